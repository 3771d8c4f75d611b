//! Reviews of access: what a user may do.
//!
//! Source: `k8s.io/kubernetes/pkg/registry/authorization` and `pkg/apis/authorization/validation`.

use lariat_apimachinery::cause::StatusCause;
use serde_json::{Value, json};

use super::question::{created, read};
use crate::access::{Attributes, Decision, Subject, User};
use crate::status::ApiError;
use crate::verbs::answer::Answer;
use crate::verbs::call::Call;
use crate::wire::route::Target;

/// Answers the three kinds that ask about one action.
pub(super) fn review(call: &Call) -> Result<Answer, ApiError> {
    let object = read(call)?;
    let spec = object.get("spec").cloned().unwrap_or_default();
    // Of the three only LocalSubjectAccessReview is namespaced.
    let is_local = call.resource.namespaced;
    let is_self = call.resource.kind == "SelfSubjectAccessReview";
    let causes = validate(&spec, is_self, is_local);
    if !causes.is_empty() {
        return Err(ApiError::invalid_as("", &call.resource.group, "", &causes));
    }
    if is_local {
        check_namespace(call, &spec)?;
    }
    let user = if is_self {
        call.user.clone()
    } else {
        subject(&spec)
    };
    let status = match call
        .server
        .access
        .decide(&call.server.store, &user, &attributes(&spec))
    {
        Decision::Allowed(reason) if reason.is_empty() => json!({"allowed": true}),
        Decision::Allowed(reason) => json!({"allowed": true, "reason": reason}),
        Decision::NoOpinion => json!({"allowed": false}),
    };
    Ok(created(object, status))
}

/// Answers what one may do in a namespace.
pub(super) fn rules(call: &Call) -> Result<Answer, ApiError> {
    let object = read(call)?;
    let namespace = object
        .get("spec")
        .and_then(|spec| spec.get("namespace")?.as_str())
        .filter(|namespace| !namespace.is_empty())
        .ok_or_else(|| ApiError::bad_request("no namespace on request"))?;
    let (resources, paths) = call
        .server
        .access
        .rules(&call.server.store, &call.user, namespace);
    let status = json!({
        "resourceRules": resources, "nonResourceRules": paths, "incomplete": false,
    });
    Ok(created(object, status))
}

fn validate(spec: &Value, is_self: bool, is_local: bool) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    if !resource.is_null() && !path.is_null() {
        let (address, verb) = (text(path, "path"), text(path, "verb"));
        let message = format!(
            "Invalid value: {{\"Path\":{address:?},\"Verb\":{verb:?}}}: cannot be specified in combination with \
             resourceAttributes"
        );
        causes.push(StatusCause::new(
            "FieldValueInvalid",
            "spec.nonResourceAttributes",
            message,
        ));
    }
    if resource.is_null() && path.is_null() {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        causes.push(StatusCause::invalid(
            "spec.resourceAttributes",
            resource,
            detail,
        ));
    }
    let groups = spec["groups"]
        .as_array()
        .is_some_and(|list| !list.is_empty());
    if !is_self && text(spec, "user").is_empty() && !groups {
        let detail = "at least one of user or group must be specified";
        causes.push(StatusCause::invalid("spec.user", &"".into(), detail));
    }
    if is_local && !path.is_null() {
        let detail = "disallowed on this kind of request";
        causes.push(StatusCause::invalid(
            "spec.nonResourceAttributes",
            path,
            detail,
        ));
    }
    causes
}

fn check_namespace(call: &Call, spec: &Value) -> Result<(), ApiError> {
    let namespace = call.namespace().unwrap_or_default();
    if text(&spec["resourceAttributes"], "namespace") == namespace {
        return Ok(());
    }
    let field = "spec.resourceAttributes.namespace";
    Err(ApiError::bad_request(format!(
        "{field} must match namespace: {namespace}"
    )))
}

fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object[member].as_str().unwrap_or_default()
}

/// Returns the user a review names.
fn subject(spec: &Value) -> User {
    let listed = spec["groups"].as_array();
    let groups = listed.into_iter().flatten().filter_map(Value::as_str);
    let user = User::new(text(spec, "user")).uid(text(spec, "uid"));
    groups.fold(user, User::group)
}

fn attributes(spec: &Value) -> Attributes {
    let path = &spec["nonResourceAttributes"];
    if path.is_object() {
        return Attributes {
            verb: text(path, "verb").to_owned(),
            subject: Subject::Path(text(path, "path").to_owned()),
        };
    }
    let resource = &spec["resourceAttributes"];
    let optional = |member: &str| Some(text(resource, member).to_owned()).filter(|t| !t.is_empty());
    Attributes {
        verb: text(resource, "verb").to_owned(),
        subject: Subject::Resource(Target {
            group: text(resource, "group").to_owned(),
            version: text(resource, "version").to_owned(),
            namespace: optional("namespace"),
            plural: text(resource, "resource").to_owned(),
            name: optional("name"),
            subresource: optional("subresource"),
            watches: false,
        }),
    }
}
