//! Reviews of access.
//!
//! Source: `k8s.io/kubernetes/pkg/apis/authorization/validation`.

use serde_json::{Value, json};

use super::causes::Causes;
use super::context::Context;
use super::field::Field;
use super::labels::{self, SelectorOptions};
use super::structs;

/// The metadata that a review must not have, in Go's order.
///
/// A local review has a namespace. What the server itself drops of new objects is not among it.
const METADATA: [&str; 9] = [
    "name",
    "generateName",
    "namespace",
    "resourceVersion",
    "generation",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
];

// `ValidateSelfSubjectAccessReview`.
pub(super) fn self_access_review(context: &Context<'_>, causes: &mut Causes) {
    let spec = context.get("spec");
    check_subject(&spec, causes);
    check_resource(&spec.get("resourceAttributes"), causes);
    check_metadata(&context.get("metadata"), "must be empty", causes);
}

// `ValidateSubjectAccessReview`.
pub(super) fn access_review(context: &Context<'_>, causes: &mut Causes) {
    check_spec(&context.get("spec"), causes);
    check_metadata(&context.get("metadata"), "must be empty", causes);
}

// `ValidateLocalSubjectAccessReview`.
pub(super) fn local_access_review(context: &Context<'_>, causes: &mut Causes) {
    let (spec, metadata) = (context.get("spec"), context.get("metadata"));
    check_spec(&spec, causes);
    check_metadata(&metadata, "must be empty except for namespace", causes);
    let (resource, path) = (
        spec.get("resourceAttributes"),
        spec.get("nonResourceAttributes"),
    );
    let namespace = resource.get("namespace");
    if resource.is_set() && namespace.text() != metadata.text_of("namespace") {
        causes.invalid_as(
            &namespace,
            namespace.text(),
            "must match metadata.namespace",
        );
    }
    if path.is_set() {
        causes.invalid_as(&path, shown(&path), "disallowed on this kind of request");
    }
}

fn check_metadata(metadata: &Field<'_>, detail: &str, causes: &mut Causes) {
    let is_given = |name: &&str| match metadata.member(name) {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        number => *number != 0,
    };
    if METADATA
        .iter()
        .filter(|name| **name != "namespace")
        .any(is_given)
    {
        let shown = structs::given_members(metadata.value(), METADATA);
        causes.invalid_struct(metadata, &shown, detail);
    }
}

// `ValidateSubjectAccessReviewSpec`.
fn check_spec(spec: &Field<'_>, causes: &mut Causes) {
    check_subject(spec, causes);
    let user = spec.get("user");
    if user.is_void() && spec.get("groups").is_void() {
        causes.invalid_as(&user, "", "at least one of user or group must be specified");
    }
    check_resource(&spec.get("resourceAttributes"), causes);
}

/// Checks that a review is about a resource or a path.
fn check_subject(spec: &Field<'_>, causes: &mut Causes) {
    let (resource, path) = (
        spec.get("resourceAttributes"),
        spec.get("nonResourceAttributes"),
    );
    if resource.is_set() && path.is_set() {
        let detail = "cannot be specified in combination with resourceAttributes";
        causes.invalid_as(&path, shown(&path), detail);
    }
    if !resource.is_set() && !path.is_set() {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        causes.invalid(&resource, detail);
    }
}

/// Checks the selectors that a review names.
// `validateResourceAttributes`. An operator that the server does not know may be one of a newer version.
fn check_resource(resource: &Field<'_>, causes: &mut Causes) {
    let fields = resource.get("fieldSelector");
    for requirement in check_selector(&fields, causes).items() {
        causes.check_given(&requirement.get("key"), "must be specified");
        labels::check_operator(&requirement, causes);
    }
    let labels = resource.get("labelSelector");
    for requirement in check_selector(&labels, causes).items() {
        labels::check_operator(&requirement, causes);
        labels::check_requirement(&requirement, SelectorOptions::default(), causes);
    }
}

/// Checks that a selector has one of its two forms; returns its requirements.
fn check_selector<'a>(selector: &Field<'a>, causes: &mut Causes) -> Field<'a> {
    let (raw, requirements) = (selector.get("rawSelector"), selector.get("requirements"));
    match (raw.is_void(), requirements.is_void()) {
        (false, false) => {
            causes.invalid(&raw, "may not specified at the same time as requirements");
        }
        (true, true) if selector.is_set() => {
            let detail =
                format!("when {selector} is specified, requirements or rawSelector is required");
            causes.required(&requirements, &detail);
        }
        _ => {}
    }
    requirements
}

/// Returns how messages show the attributes of a path.
fn shown(path: &Field<'_>) -> Value {
    json!({"Path": path.text_of("path"), "Verb": path.text_of("verb")})
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::validation::testing::check_created;

    const GROUP: &str = "authorization.k8s.io/v1";

    #[test]
    fn selectors_have_one_of_two_forms() {
        let check = |selectors: &[(&str, serde_json::Value)], expected: &[&str]| {
            let mut resource = json!({"verb": "get", "resource": "pods"});
            for (name, selector) in selectors {
                resource[name] = selector.clone();
            }
            let review = json!({"spec": {"resourceAttributes": resource}});
            check_created(GROUP, "SelfSubjectAccessReview", review, expected);
        };
        for name in ["fieldSelector", "labelSelector"] {
            let at = format!("spec.resourceAttributes.{name}");
            let missing = format!(
                "{at}.requirements: Required value: when {at} is specified, requirements or rawSelector is required"
            );
            check(&[(name, json!({}))], &[missing.as_str()]);
            let both =
                json!({"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "Exists"}]});
            let wrong = format!(
                "{at}.rawSelector: Invalid value: \"a=b\": may not specified at the same time as requirements"
            );
            check(&[(name, both)], &[wrong.as_str()]);
            let values = json!({"requirements": [{"key": "a", "operator": "Exists", "values": ["b"]},
                {"key": "a", "operator": "In"}, {"key": "a", "operator": "X", "values": ["b"]}]});
            let wrong = [
                format!(
                    "{at}.requirements[0].values: Forbidden: may not be specified when `operator` is 'Exists' or \
                     'DoesNotExist'"
                ),
                format!(
                    "{at}.requirements[1].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
                ),
            ];
            check(&[(name, values)], &wrong.each_ref().map(String::as_str));
        }
        let key = json!({"requirements": [{"key": "", "operator": "X"}]});
        let wrong = "spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified";
        check(&[("fieldSelector", key)], &[wrong]);
        let label = json!({"requirements": [{"key": "/a", "operator": "In", "values": ["/"]}]});
        let at = "spec.resourceAttributes.labelSelector.requirements[0]";
        let wrong = [
            format!("{at}.key: Invalid value: \"/a\": prefix part must be non-empty"),
            format!("{at}.values[0]: Invalid value: \"/\": a valid label must be"),
        ];
        check(
            &[("labelSelector", label)],
            &wrong.each_ref().map(String::as_str),
        );
    }

    #[test]
    fn reviews_have_no_metadata() {
        let review =
            json!({"metadata": {"labels": {"a": "b"}, "name": "x", "uid": "u"}, "spec": {}});
        let expected = [
            "metadata: Invalid value: {\"name\":\"x\",\"labels\":{\"a\":\"b\"}}: must be empty",
            "spec.resourceAttributes: Invalid value: null: exactly one of",
            "spec.user: Invalid value: \"\": at least one of user or group must be specified",
        ];
        check_created(GROUP, "SubjectAccessReview", review, &expected);
        let review = json!({"metadata": {"namespace": "a"}, "spec": {"user": "u",
            "nonResourceAttributes": {"path": "/a", "verb": "get"}}});
        let expected = [
            "spec.nonResourceAttributes: Invalid value: {\"Path\":\"/a\",\"Verb\":\"get\"}: disallowed on this kind",
        ];
        check_created(GROUP, "LocalSubjectAccessReview", review, &expected);
        let review = json!({"metadata": {"namespace": "a"}, "spec": {"user": "u", "resourceAttributes": {}}});
        let expected = [
            "spec.resourceAttributes.namespace: Invalid value: \"\": must match metadata.namespace",
        ];
        check_created(GROUP, "LocalSubjectAccessReview", review, &expected);
    }
}
