//! The requests of an apply, and the interpretation of their errors.

use kube::Client;
use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, Preconditions};
use kube::core::response::StatusCause;
use kube::core::{Request, Status};
use lariat_cache::{FollowedBy, WriteVerb};
use lariat_core::{ResourceKind, path_segment};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{FieldConflict, ObjectError};
use super::meta::{Meta, Page, Partial};
use crate::wire::{Built, Sender, is_secret, without_words};

/// The number of objects of a list request.
const PAGE: u32 = 500;

/// The collection that requests are sent to.
pub(super) struct Endpoint<'a> {
    sender: Sender,
    resource: &'a ResourceKind,
    namespace: Option<&'a str>,
    /// Whether writes are dry runs.
    is_dry: bool,
}

impl<'a> Endpoint<'a> {
    /// Creates an endpoint for the objects of a namespace, or cluster-scoped ones.
    pub(super) fn within(
        client: &Client,
        resource: &'a ResourceKind,
        namespace: Option<&'a str>,
    ) -> Self {
        Self {
            sender: Sender::new(client.clone()),
            resource,
            namespace,
            is_dry: false,
        }
    }

    /// Sets whether writes are dry runs.
    pub(super) fn dry(self, is_dry: bool) -> Self {
        Self { is_dry, ..self }
    }

    fn params(&self, params: &PatchParams) -> PatchParams {
        PatchParams {
            dry_run: params.dry_run || self.is_dry,
            ..params.clone()
        }
    }

    fn request(&self) -> Request {
        Request::new(self.resource.collection_path(self.namespace))
    }

    async fn send(&self, verb: &'static str, request: Built) -> Result<String, ObjectError> {
        let answer = self.sender.text(request).await;
        answer.map_err(|error| self.explain(verb, error))
    }

    /// Applies an object, or runs the apply dry; returns its new JSON.
    pub(super) async fn apply(
        &self,
        name: &str,
        object: &Value,
        params: &PatchParams,
    ) -> Result<String, ObjectError> {
        let request = self.request().patch(
            &path_segment(name),
            &self.params(params),
            &Patch::Apply(object),
        );
        self.send("apply", request).await
    }

    /// Merges a patch into an object, and returns its new JSON.
    pub(super) async fn merge(
        &self,
        name: &str,
        patch: &Value,
        params: &PatchParams,
    ) -> Result<String, ObjectError> {
        let request = self.request().patch(
            &path_segment(name),
            &self.params(params),
            &Patch::Merge(patch),
        );
        self.send("patch", request).await
    }

    /// Returns an object's JSON, or `None` if it does not exist.
    pub(super) async fn get(&self, name: &str) -> Result<Option<String>, ObjectError> {
        let request = self
            .request()
            .get(&path_segment(name), &GetParams::default());
        found(self.send("get", request).await)
    }

    /// Returns an object's metadata, or `None` if it does not exist.
    pub(super) async fn metadata(&self, name: &str) -> Result<Option<Meta>, ObjectError> {
        let request = self
            .request()
            .get_metadata(&path_segment(name), &GetParams::default());
        let Some(text) = found(self.send("get", request).await)? else {
            return Ok(None);
        };
        let object: Partial = parse("get", &text)?;
        Ok(Some(object.metadata))
    }

    /// Returns the metadata of all objects that a label selector matches.
    pub(super) async fn list(&self, selector: &str) -> Result<Vec<Meta>, ObjectError> {
        let (mut all, mut next) = (Vec::new(), None::<String>);
        loop {
            let mut params = ListParams::default().labels(selector).limit(PAGE);
            params.continue_token = next;
            let request = self.request().list_metadata(&params);
            let page: Page = parse("list", &self.send("list", request).await?)?;
            all.extend(page.items.into_iter().map(|item| item.metadata));
            next = page.metadata.next.filter(|token| !token.is_empty());
            if next.is_none() {
                return Ok(all);
            }
        }
    }

    /// Deletes an object in the state that was read.
    ///
    /// Its dependents are deleted in the background. Returns `false` if the object has changed since, and `true` if it
    /// was deleted or does not exist.
    pub(super) async fn delete(
        &self,
        name: &str,
        state: Preconditions,
    ) -> Result<bool, ObjectError> {
        self.delete_followed_by(name, state, &[]).await
    }

    /// Deletes an object, as [`delete`](Self::delete) does, which is then created by an apply.
    pub(super) async fn delete_to_recreate(
        &self,
        name: &str,
        state: Preconditions,
    ) -> Result<bool, ObjectError> {
        // Announced, so that no guard trips while the object does not exist.
        self.delete_followed_by(name, state, &[WriteVerb::Patch])
            .await
    }

    async fn delete_followed_by(
        &self,
        name: &str,
        state: Preconditions,
        then: &'static [WriteVerb],
    ) -> Result<bool, ObjectError> {
        // In the background: in the foreground the object would stay until its dependents are deleted, and block its
        // step.
        let mut params = DeleteParams::background().preconditions(state);
        params.dry_run = self.is_dry;
        let mut request = self.request().delete(&path_segment(name), &params);
        if let Ok(request) = &mut request {
            request.extensions_mut().insert(FollowedBy(then));
        }
        match self.send("delete", request).await {
            Ok(_) => Ok(true),
            // Another client was faster with the same intention.
            Err(error) if error.is_missing() => Ok(true),
            // The preconditions no longer hold: the object has changed since it was checked.
            Err(error) if error.has_code(409) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Interprets an error of the API server.
    fn explain(&self, verb: &'static str, error: kube::Error) -> ObjectError {
        let kube::Error::Api(status) = &error else {
            let source = Box::new(error);
            return ObjectError::Refused { verb, source };
        };
        let is_secret = is_secret(self.resource.gvk());
        // The most specific cases first.
        // Creating objects in a terminating namespace never succeeds, so the error says so instead of a plain 403.
        if has_cause(status, "NamespaceTerminating") {
            return ObjectError::NamespaceTerminating;
        }
        let conflicts = conflicts(status);
        if status.code == 409 && !conflicts.is_empty() {
            return ObjectError::Conflicts { conflicts };
        }
        // An apply to a recreated object fails with 422 too, on the uid. That is a stale read, not an invalid object.
        if verb == "apply" && status.code == 422 && !is_of_another_uid(status) {
            return invalid(status, is_secret);
        }
        if verb == "apply"
            && let Some(reason) = mistyped(status, is_secret)
        {
            return ObjectError::Mistyped { reason };
        }
        let source = Box::new(if is_secret {
            kube::Error::Api(Box::new(without_words(status)))
        } else {
            error
        });
        ObjectError::Refused { verb, source }
    }
}

/// Returns the error of an object that the API server finds invalid.
fn invalid(status: &Status, is_secret: bool) -> ObjectError {
    let fields = immutable_fields(status);
    if !fields.is_empty() {
        return ObjectError::Immutable { fields };
    }
    // The message quotes values. For a Secret only the names of the fields are kept.
    let reason = if is_secret {
        let fields: Vec<&str> = causes(status).map(|cause| &*cause.field).collect();
        fields.join(", ")
    } else {
        status.message.clone()
    };
    ObjectError::Invalid { reason }
}

/// Describes what does not fit the schema of an applied object; `None` for any other error.
///
/// The API server answers 500 without a reason or causes, so only the message tells.
fn mistyped(status: &Status, is_secret: bool) -> Option<String> {
    let rest = status
        .message
        .strip_prefix("failed to create typed patch object (")?;
    let (_, found) = rest.split_once("): ")?;
    let lines = found.trim_start_matches("errors:").lines().map(str::trim);
    // Values are printed as they are, and may have lines of their own.
    let lines = lines.filter(|line| line.starts_with('.'));
    let fields: Vec<&str> = lines.map(|line| without_values(line, is_secret)).collect();
    let is_spelled_wrong = fields.iter().any(|field| field.ends_with(UNDECLARED));
    let hint = if is_spelled_wrong {
        "; check the spelling of the field"
    } else {
        ""
    };
    Some(format!("{}{hint}", fields.join(", ")))
}

/// Leaves out what a line about a field quotes of the object.
fn without_values(line: &str, is_secret: bool) -> &str {
    let cut = |line: &'_ str, at: &str| line.find(at).unwrap_or(line.len());
    let line = &line[..cut(line, ", got ")];
    if is_secret {
        &line[..cut(line, " for key [")]
    } else {
        line
    }
}

/// The end of the API server's message for a field that a kind does not have.
const UNDECLARED: &str = ": field not declared in schema";

impl ObjectError {
    pub(super) fn has_code(&self, code: u16) -> bool {
        let Self::Refused { source, .. } = self else {
            return false;
        };
        matches!(&**source, kube::Error::Api(status) if status.code == code)
    }

    /// Returns whether the object does not exist.
    ///
    /// If the kind is not served, the result is `false`: its objects may exist.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if lariat_client::is_missing(source))
    }

    /// Returns whether a read was refused for lack of permission.
    ///
    /// A forbidden write may have other reasons, such as admission.
    pub(super) fn is_reading_forbidden(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                verb: "get" | "list",
                ..
            }
        ) && self.has_code(403)
    }

    /// Returns whether a write was refused because the object has changed.
    ///
    /// Its uid or resource version differs from the one that was read, or it does not exist any more.
    pub(super) fn is_outdated(&self) -> bool {
        let Self::Refused { source, .. } = self else {
            return false;
        };
        let kube::Error::Api(status) = &**source else {
            return false;
        };
        status.code == 409 || is_of_another_uid(status)
    }
}

/// Returns whether an apply was refused because the object has another uid.
///
/// The API server takes that for an attempt to change the uid, which is immutable.
fn is_of_another_uid(status: &Status) -> bool {
    status.code == 422 && causes(status).any(|cause| cause.field == "metadata.uid")
}

fn causes(status: &Status) -> impl Iterator<Item = &StatusCause> {
    status.details.iter().flat_map(|details| &details.causes)
}

/// Converts the error of a missing object to `None`.
fn found(answer: Result<String, ObjectError>) -> Result<Option<String>, ObjectError> {
    match answer {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Decodes an answer; the error has no values, which may be secret.
pub(super) fn parse<T: DeserializeOwned>(verb: &'static str, text: &str) -> Result<T, ObjectError> {
    serde_json::from_str(text).map_err(|_| ObjectError::Unreadable { verb })
}

fn has_cause(status: &Status, reason: &str) -> bool {
    causes(status).any(|cause| cause.reason == reason)
}

fn conflicts(status: &Status) -> Vec<FieldConflict> {
    let conflicts = causes(status).filter(|cause| cause.reason == "FieldManagerConflict");
    let read = |cause: &StatusCause| FieldConflict {
        field: cause.field.clone(),
        manager: cause.message.clone(),
    };
    conflicts.map(read).collect()
}

/// Returns the fields that an error calls immutable.
///
/// The result is empty if the error has other causes too: then a new object would be refused as well, and a replacement
/// would only delete the old one.
fn immutable_fields(status: &Status) -> Vec<String> {
    // A status without causes passes `all`, and gives an empty list below: it names no immutable field.
    if !causes(status).all(is_immutable) {
        return Vec::new();
    }
    causes(status).map(|cause| cause.field.clone()).collect()
}

/// Returns whether a cause is a change of an immutable field.
///
/// There is no code for this, only messages. These are the messages of Kubernetes' own kinds. CRDs have their own
/// messages, most of which contain "immutable".
fn is_immutable(cause: &StatusCause) -> bool {
    const WORDS: [&str; 6] = [
        "immutable",
        "may not be changed",
        "may not change",
        "cannot be changed",
        "cannot change",
        "updates to",
    ];
    // Messages of other reasons, such as a required field or a wrong type, may contain the same words.
    let may_be = matches!(&*cause.reason, "FieldValueInvalid" | "FieldValueForbidden");
    let said = own_words(&cause.message);
    may_be && WORDS.iter().any(|words| said.contains(words))
}

/// Returns the message of the validation rule alone.
///
/// The message before the last colon quotes the value, which may contain any words.
fn own_words(message: &str) -> &str {
    let line = message.lines().next().unwrap_or_default();
    line.rsplit_once(": ").map_or(line, |(_, said)| said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(causes: &[(&str, &str, &str)]) -> Status {
        let cause = |each: &(&str, &str, &str)| json!({"reason": each.0, "field": each.1, "message": each.2});
        let causes: Vec<Value> = causes.iter().map(cause).collect();
        serde_json::from_value(
            json!({"status": "Failure", "code": 422, "details": {"causes": causes}}),
        )
        .unwrap()
    }

    const SELECTOR: (&str, &str, &str) = (
        "FieldValueInvalid",
        "spec.selector",
        "Invalid value: {\"matchLabels\":{\"app\":\"b\"}}: field is immutable",
    );

    #[test]
    fn fields_that_do_not_fit_the_schema_are_named_without_secret_values() {
        let of = |message: &str, is_secret: bool| {
            let message = format!("failed to create typed patch object {message}");
            let status = Status::failure(&message, "").with_code(500);
            mistyped(&status, is_secret).expect("it is about the schema")
        };
        // As kube-apiserver answers.
        let typo = "(/a; apps/v1, Kind=Deployment): .spec.replica: field not declared in schema";
        assert_eq!(
            of(typo, false),
            ".spec.replica: field not declared in schema; check the spelling of the field"
        );
        let secret = "(/a; /v1, Kind=Secret): errors:\n  .type: expected string, got \
            &value.valueUnstructured{Value:3}\n  .stringDate: field not declared in schema";
        assert_eq!(
            of(secret, true),
            ".type: expected string, .stringDate: field not declared in schema; check the spelling of the field"
        );
        // A value is printed as it is.
        let lines = "(/a; /v1, Kind=Secret): .data: expected map, got &{-----BEGIN KEY-----\nc2VjcmV0\n-----END}";
        assert_eq!(of(lines, true), ".data: expected map");
        let twice = "(/a; /v1, Kind=Pod): .spec.containers: duplicate entries for key [name=\"a\"]";
        assert_eq!(
            of(twice, false),
            ".spec.containers: duplicate entries for key [name=\"a\"]"
        );
        let live = "failed to create typed live object: .spec.a: field not declared in schema";
        let status = Status::failure(live, "").with_code(500);
        assert_eq!(mistyped(&status, false), None);
    }

    #[test]
    fn words_of_the_kinds_of_kubernetes_are_known() {
        let claim = "Forbidden: spec is immutable after creation except resources.requests\n  core.Spec{\n- x: 1,";
        let pod = "Forbidden: pod updates may not change fields other than `spec.tolerations`\n  core.PodSpec{A: 1}";
        let set =
            "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden";
        let role = "Invalid value: {\"kind\":\"Role\"}: cannot change roleRef";
        for (reason, message) in [
            ("FieldValueForbidden", claim),
            ("FieldValueForbidden", pod),
            ("FieldValueForbidden", set),
            ("FieldValueInvalid", role),
        ] {
            let fields = immutable_fields(&refusal(&[(reason, "spec", message)]));
            assert_eq!(fields, ["spec"], "{message}");
        }
        assert_eq!(immutable_fields(&refusal(&[SELECTOR])), ["spec.selector"]);
    }

    #[test]
    fn what_would_be_refused_anew_is_not_only_immutable() {
        let port = (
            "FieldValueInvalid",
            "spec.port",
            "Invalid value: 700000: must be between 1 and 65535",
        );
        assert_eq!(immutable_fields(&refusal(&[SELECTOR, port])).len(), 0);
        let quoted = (
            "FieldValueInvalid",
            "spec.image",
            "Invalid value: \"registry/immutable-app\": must be known",
        );
        assert_eq!(immutable_fields(&refusal(&[quoted])).len(), 0);
        assert_eq!(immutable_fields(&refusal(&[])).len(), 0);
    }
}
