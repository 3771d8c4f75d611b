//! Writes that conflict with what is stored.

use http::StatusCode;
use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::go_text::quoted;
use lariat_apimachinery::kinds::{Resource, qualified};
use lariat_core::ObjectKey;
use serde_json::json;

use super::error::{ApiError, checked_group};

impl ApiError {
    pub(crate) fn already_exists(resource: &Resource, name: &str, deleting: bool) -> Self {
        let prefix = if deleting {
            "object is being deleted: "
        } else {
            ""
        };
        let message = format!(
            "{prefix}{} {name} already exists",
            resource.qualified(),
            name = quoted(name)
        );
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about_object(resource, name)
    }

    pub(crate) fn conflict(resource: &Resource, name: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name}: the object has been modified; please \
             apply your changes to the latest version and try again",
            resource.qualified(),
            name = quoted(name)
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message).about_object(resource, name)
    }

    /// A conflict about something that is no object of its own.
    pub(crate) fn conflict_about(kind: &str, name: &str, detail: &str) -> Self {
        Self::conflict_of(kind, "", name, detail)
    }

    /// The same for a kind of a group.
    pub(crate) fn conflict_of(kind: &str, group: &str, name: &str, detail: &str) -> Self {
        let whose = qualified(kind, group);
        let message = format!(
            "Operation cannot be fulfilled on {whose} {name}: {detail}",
            name = quoted(name)
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(kind, group, name)
    }

    /// The error of an apply that would change fields of other managers; it names no object.
    pub(crate) fn apply_conflict(message: String, causes: &[StatusCause]) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message).causes(causes)
    }

    /// An update without the version this kind requires. It names the resource.
    pub(crate) fn version_required(resource: &Resource, name: &str) -> Self {
        let message = "must be specified for an update";
        let cause = StatusCause::invalid("metadata.resourceVersion", &json!(0), message);
        Self::invalid_as(&resource.plural, &resource.group, name, &[cause])
    }

    /// A failed precondition of a deletion. It names the kind.
    pub(crate) fn precondition(resource: &Resource, name: &str, what: &str) -> Self {
        Self::conflict_of(&resource.kind, checked_group(resource), name, what)
    }

    /// An object that is applied under the uid of one that is gone.
    pub(crate) fn precondition_uid(resource: &Resource, name: &str, uid: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name}: uid mismatch: the provided object \
             specified uid {uid}, and no existing object was found",
            resource.qualified(),
            name = quoted(name)
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message).about_object(resource, name)
    }

    /// An update of an object with another uid, as a real server's storage words it.
    pub(crate) fn uid_mismatch(
        resource: &Resource,
        key: &ObjectKey,
        sent: &str,
        is: &str,
        dry_run: bool,
    ) -> Self {
        Self::unmet(resource, key, ("UID", sent, is), dry_run)
    }

    /// The deletion of a namespace or a CRD with another uid or version.
    pub(crate) fn emptied_precondition(
        resource: &Resource,
        name: &str,
        (what, sent, is): (&str, &str, &str),
    ) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name}: Precondition failed: {what} in precondition: {sent}, \
             {what} in object meta: {is}",
            resource.qualified(),
            name = quoted(name)
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message).about_object(resource, name)
    }

    /// A precondition that does not hold, as the storage of a real server words it.
    ///
    /// A dry run has no storage with a prefix.
    pub(crate) fn unmet(
        resource: &Resource,
        key: &ObjectKey,
        what: (&str, &str, &str),
        dry_run: bool,
    ) -> Self {
        let root = if dry_run { "" } else { "/registry" };
        Self::unmet_in(root, resource, key, what)
    }

    fn unmet_in(
        root: &str,
        resource: &Resource,
        key: &ObjectKey,
        (what, sent, is): (&str, &str, &str),
    ) -> Self {
        let (name, plural) = (key.name(), resource.plural.as_str());
        // The folder of the kind in etcd; some kinds had other names once.
        let folder = match (resource.group.as_str(), plural) {
            ("", "services") => "services/specs".to_owned(),
            ("", "endpoints") => "services/endpoints".to_owned(),
            ("", "nodes") => "minions".to_owned(),
            ("", "replicationcontrollers") => "controllers".to_owned(),
            ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
            (group, plural) if resource.rules.custom => format!("{group}/{plural}"),
            (_, plural) => plural.to_owned(),
        };
        let message = format!(
            "Operation cannot be fulfilled on {} {name}: StorageError: invalid object, Code: 4, \
             Key: {root}/{folder}/{key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
             {what} in precondition: {sent}, {what} in object meta: {is}",
            resource.qualified(),
            name = quoted(name)
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message).about_object(resource, name)
    }

    /// A scale that was meant for an object with another uid.
    pub(crate) fn scale_uid_mismatch(
        resource: &Resource,
        name: &str,
        sent: &str,
        is: &str,
    ) -> Self {
        let part = format!("{}/scale", resource.plural);
        let message = format!(
            "Operation cannot be fulfilled on {} {name}: Precondition failed: UID in \
             precondition: {sent}, UID in object meta: {is}",
            qualified(&part, &resource.group),
            name = quoted(name)
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(&part, &resource.group, name)
    }

    /// An eviction for which a budget has no disruption left.
    pub(crate) fn budget_exhausted(reason: String) -> Self {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let cause = StatusCause::new("DisruptionBudget", "", reason);
        let code = StatusCode::TOO_MANY_REQUESTS;
        Self::new(code, "TooManyRequests", message).causes(&[cause])
    }

    /// An eviction whose changed budget no controller has observed yet.
    pub(crate) fn budget_unobserved(budget: &str) -> Self {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let cause =
            format!("The disruption budget {budget} is still being processed by the server.");
        let cause = StatusCause::new("DisruptionBudget", "", cause);
        let code = StatusCode::TOO_MANY_REQUESTS;
        let error = Self::new(code, "TooManyRequests", message).causes(&[cause]);
        error.after(Some(10))
    }
}
