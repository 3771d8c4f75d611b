//! The attributes of a call that admission gets.

use lariat_apimachinery::admission::{Attributes, Operation, ResourceName};
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_core::Gvk;
use serde_json::{Value, json};

use super::call::Call;
use super::patch;
use crate::admission::Request;
use crate::status::ApiError;

impl Call {
    /// Returns the call as a creation of an object, for admission.
    pub(super) fn as_creation(&self, object: &Object, dry_run: bool) -> Request<'_> {
        // The path of a POST has no name. Admission is given that of the object, and none if it is still to be
        // generated.
        let named = metadata_text(object, "name");
        let name = if named.is_empty() { self.name() } else { named };
        let options = self.options("CreateOptions", dry_run);
        self.admission(Operation::Create, name, options, dry_run)
    }

    /// Returns the call as a change of its object, for admission.
    pub(super) fn as_update(&self, dry_run: bool) -> Request<'_> {
        let is_patch = patch::is_patch(self.media_type());
        let kind = if is_patch {
            "PatchOptions"
        } else {
            "UpdateOptions"
        };
        let options = self.options(kind, dry_run);
        self.admission(Operation::Update, self.name(), options, dry_run)
    }

    /// Returns the call as a deletion of its object, for admission.
    pub(super) fn as_deletion(&self, options: Value, dry_run: bool) -> Request<'_> {
        self.admission(Operation::Delete, self.name(), options, dry_run)
    }

    /// Runs admission for an object whose kind differs from the resource's.
    ///
    /// It is created, but not stored, as an Eviction is.
    pub(super) async fn admit_as(
        &self,
        (api_version, kind): (&str, &str),
        dry_run: bool,
        mut object: Object,
    ) -> Result<Object, ApiError> {
        let request = of_kind(self.as_creation(&object, dry_run), api_version, kind);
        object.insert("kind".into(), kind.into());
        object.insert("apiVersion".into(), api_version.into());
        // No plugin of the server is about kinds that are not stored.
        let object = request.mutate(&|_| Ok(()), None, object).await?;
        request.validate(None, Some(&object)).await?;
        Ok(object)
    }

    fn admission(
        &self,
        operation: Operation,
        name: &str,
        options: Value,
        dry_run: bool,
    ) -> Request<'_> {
        let resource = &self.resource;
        // As RequestInfoFactory: the namespace of a Namespace is itself.
        let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
        let namespace = self.namespace().filter(|_| resource.namespaced);
        let namespace = namespace
            .or(is_namespace.then_some(name))
            .unwrap_or_default();
        Request {
            server: &self.server,
            resource,
            attributes: Attributes {
                operation,
                resource: ResourceName {
                    group: resource.group.clone(),
                    version: resource.version.clone(),
                    plural: resource.plural.clone(),
                },
                subresource: self.target.subresource.clone().unwrap_or_default(),
                kind: resource.gvk(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                options,
                dry_run,
                user: self.user.info(),
            },
            user: &self.user,
            warnings: &self.warnings,
            mark: self.mark,
        }
    }

    /// Returns the options of a write as the object they are in Go.
    fn options(&self, kind: &str, dry_run: bool) -> Value {
        let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        if dry_run {
            options["dryRun"] = json!(["All"]);
        }
        for member in ["fieldManager", "fieldValidation"] {
            if let Some(text) = self.query.text(member) {
                options[member] = text.into();
            }
        }
        if let Some(force) = self.query.flag("force").filter(|_| kind == "PatchOptions") {
            options["force"] = force.into();
        }
        options
    }
}

/// Returns the request with the kind of its body, which is not that of the resource.
pub(super) fn of_kind<'a>(mut request: Request<'a>, api_version: &str, kind: &str) -> Request<'a> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    request.attributes.kind = Gvk::new(group, version, kind);
    request
}
