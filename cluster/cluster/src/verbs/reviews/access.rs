//! Reviews of access: what a user may do.
//!
//! Source: `k8s.io/kubernetes/pkg/registry/authorization` and `pkg/apis/authorization/validation`.

use lariat_apimachinery::validation::{self, Part};
use lariat_core::{FieldSelector, LabelSelector};
use serde_json::{Value, json};

use super::review::{created, read};
use crate::access::{Attributes, Decision, Subject, User};
use crate::status::ApiError;
use crate::verbs::answer::Answer;
use crate::verbs::call::Call;
use crate::wire::route::Target;

/// Answers the three kinds that ask about one action.
pub(super) fn review(call: &Call) -> Result<Answer, ApiError> {
    let object = read(call)?;
    let causes = validation::validate(&call.resource, &object, None, Part::Main);
    if !causes.is_empty() {
        return Err(ApiError::invalid_as("", &call.resource.group, "", &causes));
    }
    let spec = object.get("spec").cloned().unwrap_or_default();
    let user = if call.resource.kind == "SelfSubjectAccessReview" {
        call.user.clone()
    } else {
        subject(&spec)
    };
    let mut status = match call
        .server
        .access
        .decide(&call.server.store, &user, &attributes(&spec))
    {
        Decision::Allowed(reason) if reason.is_empty() => json!({"allowed": true}),
        Decision::Allowed(reason) => json!({"allowed": true, "reason": reason}),
        Decision::NoOpinion(reason) if reason.is_empty() => json!({"allowed": false}),
        Decision::NoOpinion(reason) => json!({"allowed": false, "reason": reason}),
    };
    let errors = misread(&spec["resourceAttributes"]);
    if !errors.is_empty() {
        status["evaluationError"] = errors.into();
    }
    Ok(created(object, status))
}

/// Answers the rules of a user in a namespace.
pub(super) fn rules(call: &Call) -> Result<Answer, ApiError> {
    let mut object = read(call)?;
    // The answer is a new object, which has nothing of what was sent.
    object.insert("metadata".into(), json!({}));
    let spec = object.insert("spec".into(), json!({})).unwrap_or_default();
    let namespace = match text(&spec, "namespace") {
        "" => return Err(ApiError::bad_request("no namespace on request")),
        namespace => namespace,
    };
    let rules = call
        .server
        .access
        .rules(&call.server.store, &call.user, namespace);
    let mut status = json!({
        "resourceRules": rules.resources, "nonResourceRules": rules.paths, "incomplete": false,
    });
    if !rules.missing.is_empty() {
        status["evaluationError"] = rules.missing.into();
    }
    Ok(created(object, status))
}

/// Returns the errors of selectors that were not understood, or not in whole.
// `BuildEvaluationError`.
fn misread(resource: &Value) -> String {
    let is_field = |raw: &str| raw.parse::<FieldSelector>().is_ok();
    let is_label = |raw: &str| raw.parse::<LabelSelector>().is_ok();
    let fields = understood(&resource["fieldSelector"], is_field, |requirement| {
        // `fieldSelectorAsSelector`.
        let values = requirement["values"].as_array();
        let is_known = matches!(text(requirement, "operator"), "In" | "NotIn");
        is_known && values.is_some_and(|values| values.len() == 1)
    });
    let labels = understood(&resource["labelSelector"], is_label, |requirement| {
        // `labelSelectorAsSelector`.
        let operator = text(requirement, "operator");
        matches!(operator, "In" | "NotIn" | "Exists" | "DoesNotExist")
    });
    let mut errors = Vec::new();
    for (selector, (some, all)) in [("fieldSelector", fields), ("labelSelector", labels)] {
        if !all {
            let partially = if some { "partially " } else { "" };
            errors.push(format!(
                "spec.resourceAttributes.{selector} {partially}ignored due to parse error"
            ));
        }
    }
    errors.join("; ")
}

/// Returns whether something of a selector is understood, and whether all is.
fn understood(
    selector: &Value,
    parses: impl Fn(&str) -> bool,
    is_known: impl Fn(&Value) -> bool,
) -> (bool, bool) {
    let raw = text(selector, "rawSelector");
    let (mut some, mut all) = (false, raw.is_empty() || parses(raw));
    for requirement in selector["requirements"].as_array().into_iter().flatten() {
        let is_known = is_known(requirement);
        some |= is_known;
        all &= is_known;
    }
    (some, all)
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
