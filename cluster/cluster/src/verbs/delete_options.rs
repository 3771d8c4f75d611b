//! The options of a deletion, from its body or its query.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::go_text::quoted;
use lariat_apimachinery::object::Object;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::decode::Expected;
use super::delete_rules::{self, Deletion, Propagation};
use crate::status::ApiError;
use crate::store::Stored;
use crate::verbs::call::Call;
use crate::wire::write_options;

/// A `DeleteOptions` as it is sent.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeleteOptions {
    api_version: Option<String>,
    kind: Option<String>,
    grace_period_seconds: Option<i64>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    preconditions: Option<Preconditions>,
    dry_run: Option<Vec<Option<String>>>,
    ignore_store_read_error_with_cluster_breaking_potential: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl DeleteOptions {
    /// Reads the body; the query counts only if there is none.
    pub(super) fn of(call: &Call) -> Result<Self, ApiError> {
        let mut options = if call.body.is_empty() {
            Self::of_query(call)?
        } else {
            Self::of_body(call)?
        };
        // AllowUnsafeMalformedObjectDeletion is off by default.
        options.ignore_store_read_error_with_cluster_breaking_potential = None;
        options.check()?;
        Ok(options)
    }

    /// Reads the options of an eviction, which are not checked yet.
    pub(super) fn of_eviction(eviction: &Object) -> Result<Self, ApiError> {
        let options = eviction.get("deleteOptions").filter(|each| !each.is_null());
        let mut options = options.cloned().unwrap_or_default();
        // Unlike those of a deletion, they are a part of a typed object, which does not look at the type of its parts.
        if let Some(options) = options.as_object_mut() {
            options.retain(|name, _| !matches!(name.as_str(), "kind" | "apiVersion"));
        }
        if options.is_null() {
            return Ok(Self::default());
        }
        Self::read(options)
    }

    /// Refuses options that are wrong.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        let causes = self.causes();
        if causes.is_empty() {
            Ok(())
        } else {
            Err(ApiError::invalid_delete_options(&causes))
        }
    }

    /// Refuses options that an eviction cannot have.
    ///
    /// Source: `EvictionREST.Create` and `propagateDryRun` in `k8s.io/kubernetes/pkg/registry/core/pod/storage`.
    pub(super) fn check_eviction(&self, name: &str, dry_run: bool) -> Result<(), ApiError> {
        let field = "ignoreStoreReadErrorWithClusterBreakingPotential";
        if self.ignore_store_read_error_with_cluster_breaking_potential == Some(true) {
            let field = format!("deleteOptions.{field}");
            let reason = "can not be set for pod eviction, try after removing the option";
            let cause = StatusCause::invalid(&field, &true.into(), reason);
            return Err(ApiError::invalid_as("Eviction", "policy", name, &[cause]));
        }
        let own = self.dry_run_values();
        if dry_run && !own.is_empty() && own != ["All"] {
            return Err(ApiError::internal(format!(
                "Non-matching dry-run options in request and content: [All] and [{}]",
                own.join(" ")
            )));
        }
        Ok(())
    }

    /// Returns the options without empty preconditions.
    pub(super) fn given(&self) -> Self {
        let is_given = |text: &String| !text.is_empty();
        let preconditions = self.preconditions.clone().map(|each| Preconditions {
            uid: each.uid.filter(is_given),
            resource_version: each.resource_version.filter(is_given),
        });
        Self {
            preconditions,
            ..self.clone()
        }
    }

    /// Returns the options without a precondition about the version.
    pub(super) fn without_version(&self) -> Self {
        let preconditions = self.preconditions.clone().map(|each| Preconditions {
            resource_version: None,
            ..each
        });
        Self {
            preconditions,
            ..self.clone()
        }
    }

    fn of_body(call: &Call) -> Result<Self, ApiError> {
        Self::read(call.decode_options(Expected {
            kind: "DeleteOptions",
            api_version: "meta.k8s.io/v1",
            custom: false,
        })?)
    }

    fn read(value: Value) -> Result<Self, ApiError> {
        // A list is no form of options, though serde would take one, nor of preconditions.
        if value["preconditions"].is_array() {
            return Err(ApiError::bad_request(
                "json: cannot unmarshal array into Go struct field DeleteOptions.preconditions of type v1.Preconditions",
            ));
        }
        let object = serde_json::from_value::<Object>(value);
        let options: Self = object
            .and_then(|object| serde_json::from_value(object.into()))
            .map_err(|error| {
                ApiError::bad_request(format!("the body is not a DeleteOptions: {error}"))
            })?;
        match options.kind.as_deref() {
            None | Some("" | "DeleteOptions") => Ok(options),
            Some(kind) => {
                let version = options.api_version.as_deref().unwrap_or_default();
                Err(ApiError::bad_request(format!(
                    // Go names the place in its own source where the scheme is made.
                    "no kind {kind} is registered for version {version} in scheme \
                     \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\"",
                    kind = quoted(kind),
                    version = quoted(version)
                )))
            }
        }
    }

    fn of_query(call: &Call) -> Result<Self, ApiError> {
        // Source: `Convert_url_Values_To_v1_DeleteOptions`.
        let query = &call.query;
        let (uid, version) = (query.text("uid"), query.text("resourceVersion"));
        let preconditions = Preconditions {
            uid: uid.map(str::to_owned),
            resource_version: version.map(str::to_owned),
        };
        let dry_run = query.all("dryRun").iter().cloned().map(Some).collect();
        Ok(Self {
            api_version: None,
            kind: None,
            grace_period_seconds: query.number("gracePeriodSeconds")?,
            propagation_policy: query.given("propagationPolicy").map(str::to_owned),
            orphan_dependents: query.flag("orphanDependents"),
            preconditions: Some(preconditions).filter(|each| !each.is_empty()),
            dry_run: Some(dry_run),
            ignore_store_read_error_with_cluster_breaking_potential: None,
        })
    }

    /// Validates the options.
    ///
    /// Source: `ValidateDeleteOptions` in `k8s.io/apimachinery/pkg/apis/meta/v1/validation`.
    fn causes(&self) -> Vec<StatusCause> {
        let mut causes = Vec::new();
        if let Some(policy) = &self.propagation_policy {
            if self.orphan_dependents.is_some() {
                let reason = "orphanDependents and deletionPropagation cannot be both set";
                let value = policy.as_str().into();
                causes.push(StatusCause::invalid("propagationPolicy", &value, reason));
            }
            if Propagation::parse(policy).is_none() {
                // Go's list of what is supported has this `nil` in it, as a text.
                let supported = r#""Foreground", "Background", "Orphan", "nil""#;
                causes.push(StatusCause::unsupported(
                    "propagationPolicy",
                    policy,
                    supported,
                ));
            }
        }
        causes.extend(write_options::of_dry_run(&self.dry_run_values()));
        causes.extend(self.causes_of_ignored_errors());
        causes
    }

    /// Returns the values of `dryRun`; Go reads null as an empty text.
    fn dry_run_values(&self) -> Vec<String> {
        let values = self.dry_run.iter().flatten();
        values
            .map(|value| value.clone().unwrap_or_default())
            .collect()
    }

    /// Finds options that exclude ignoring read errors.
    fn causes_of_ignored_errors(&self) -> Vec<StatusCause> {
        let field = "ignoreStoreReadErrorWithClusterBreakingPotential";
        if self.ignore_store_read_error_with_cluster_breaking_potential != Some(true) {
            return Vec::new();
        }
        let conditions = self.preconditions.as_ref();
        let others = [
            (".dryRun", self.is_dry_run()),
            (".propagationPolicy", self.propagation_policy.is_some()),
            (".orphanDependents", self.orphan_dependents.is_some()),
            (".gracePeriodSeconds", self.grace_period_seconds.is_some()),
            (
                ".preconditions",
                conditions.is_some_and(|each| !each.is_empty()),
            ),
        ];
        let given = others.iter().filter(|(_, given)| *given);
        let cause = |(other, _): &(&str, bool)| {
            let reason = format!("cannot be set together with {other}");
            StatusCause::invalid(field, &true.into(), &reason)
        };
        given.map(cause).collect()
    }

    /// Returns the options as the object they are in Go.
    pub(super) fn json(&self) -> Value {
        let mut options = json!(self);
        options["kind"] = "DeleteOptions".into();
        options["apiVersion"] = "meta.k8s.io/v1".into();
        if let Some(members) = options.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        if let Some(Value::Object(members)) = options.get_mut("preconditions") {
            members.retain(|_, value| !value.is_null());
        }
        options
    }

    /// Returns the deletion that the options ask for.
    pub(super) fn deletion(&self) -> Deletion {
        let policy = self.propagation_policy.as_deref();
        let legacy = self.orphan_dependents.map(|orphan| {
            if orphan {
                Propagation::Orphan
            } else {
                Propagation::Background
            }
        });
        Deletion {
            // A negative period is one second.
            grace: self
                .grace_period_seconds
                .map(|seconds| u64::try_from(seconds).unwrap_or(1)),
            propagation: policy.and_then(Propagation::parse).or(legacy),
        }
    }

    /// Returns whether a deletion that waits is answered with 202.
    ///
    /// Clients that send `orphanDependents` expect it.
    pub(super) fn is_accepted_later(&self) -> bool {
        self.orphan_dependents == Some(false)
    }

    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run
            .as_ref()
            .is_some_and(|values| !values.is_empty())
    }

    /// Checks that the object is the one the client means.
    pub(super) fn check_preconditions(&self, call: &Call, stored: &Stored) -> Result<(), ApiError> {
        let Some(preconditions) = &self.preconditions else {
            return Ok(());
        };
        let name = stored.key().name();
        let refuse = |what: String| Err(ApiError::precondition(&call.resource, name, &what));
        // The storages of namespaces and CRDs compare by themselves, before BeforeDelete, and have words of their own.
        // A deletion of a collection goes past them.
        let is_emptied = call.target.name.is_some() && delete_rules::is_emptied(&call.resource);
        let refuse_emptied = |what| Err(ApiError::emptied_precondition(&call.resource, name, what));
        if let Some(uid) = &preconditions.uid
            && uid != stored.uid()
        {
            if is_emptied {
                return refuse_emptied(("UID", uid, stored.uid()));
            }
            return refuse(format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The \
                 object might have been deleted and then recreated",
                stored.uid()
            ));
        }
        if let Some(version) = &preconditions.resource_version
            && *version != stored.revision().to_string()
        {
            if is_emptied {
                let is = stored.revision().to_string();
                return refuse_emptied(("ResourceVersion", version, &is));
            }
            return refuse(format!(
                "the ResourceVersion in the precondition ({version}) does not match the \
                 ResourceVersion in record ({}). The object might have been modified",
                stored.revision()
            ));
        }
        Ok(())
    }
}

impl Preconditions {
    fn is_empty(&self) -> bool {
        self.uid.is_none() && self.resource_version.is_none()
    }
}
