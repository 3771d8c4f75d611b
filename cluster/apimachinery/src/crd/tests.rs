//! What is refused of a CRD, in the words of a genuine API server.

use serde_json::{Value, json};

use super::validate;
use crate::cause::StatusCause;
use crate::object::Object;

/// The path of the schema of a CRD with one version.
pub(super) const ROOT: &str = "spec.validation.openAPIV3Schema";

/// Returns a valid CRD with the given schema of `spec.x`.
fn with_schema(schema: &Value) -> Value {
    let spec = json!({"type": "object", "properties": {"x": schema}});
    with_root(&json!({"type": "object", "properties": {"spec": spec}}))
}

/// Returns a valid CRD with a schema.
pub(super) fn with_root(schema: &Value) -> Value {
    json!({
        "metadata": {"name": "ams.am.example.com"},
        "spec": {
            "group": "am.example.com", "scope": "Namespaced",
            "names": {"plural": "ams", "singular": "am", "kind": "Am", "listKind": "AmList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": schema,
            }}],
            "conversion": {"strategy": "None"},
        },
        "status": {"storedVersions": ["v1"]},
    })
}

fn object(value: &Value) -> &Object {
    value.as_object().expect("it is an object")
}

pub(super) fn causes(new: &Value, old: Option<&Value>) -> Vec<String> {
    let causes = validate(object(new), old.map(object));
    causes.iter().map(StatusCause::text).collect()
}

/// Checks what is said of a schema; expected texts go on after its path.
fn check(schema: &Value, expected: &[&str]) {
    let path = "spec.validation.openAPIV3Schema.properties[spec].properties[x]";
    let expected: Vec<String> = expected
        .iter()
        .map(|text| format!("{path}{text}"))
        .collect();
    assert_eq!(causes(&with_schema(schema), None), expected, "{schema}");
}

#[test]
fn schemas_are_refused_as_by_a_genuine_server() {
    check(&json!({"type": "integer"}), &[]);
    check(
        &json!({"type": "integer", "default": 3, "x-kubernetes-validations": [{"rule": "self > 5"}]}),
        &[".default: Invalid value: 3: failed rule: self > 5"],
    );
    check(
        &json!({"type": "integer", "x-kubernetes-validations": [
            {"rule": "true", "message": "  "},
            {"rule": "true", "fieldPath": ".x"},
            {"rule": "true", "fieldPath": "  "},
            {"rule": "true", "reason": "No"},
        ]}),
        &[
            ".x-kubernetes-validations[0].message: Invalid value: \"  \": must be non-empty if specified",
            ".x-kubernetes-validations[1].fieldPath: Invalid value: \".x\": must be a valid path",
            ".x-kubernetes-validations[2].fieldPath: Invalid value: \"  \": must be non-empty if specified",
            ".x-kubernetes-validations[2].fieldPath: Invalid value: \"  \": must be a valid path",
            ".x-kubernetes-validations[3].reason: Unsupported value: \"No\": supported values: \
             \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\"",
        ],
    );
    let keyed = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "nullable": true, "properties": {"k": {"type": "object"}}},
    });
    check(
        &keyed,
        &[
            ".items.properties[k].type: Invalid value: \"object\": must be a scalar type if parent \
             array's x-kubernetes-list-type is map",
            ".items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map",
            ".items.properties[k].default: Required value: this property is in \
             x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    let set = json!({
        "type": "array", "x-kubernetes-list-type": "set",
        "items": {"type": "object", "x-kubernetes-map-type": "granular"},
    });
    check(
        &set,
        &[
            ".items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with \
             x-kubernetes-list-type=set",
        ],
    );
}

#[test]
fn rules_see_what_a_schema_declares() {
    let hidden = json!({"x-kubernetes-preserve-unknown-fields": true});
    check(
        &json!({"type": "array", "items": hidden, "x-kubernetes-validations": [{"rule": "true"}]}),
        &[
            ".x-kubernetes-validations: Internal error: internal error: failed to construct type information for \
             x-kubernetes-validations rules: unable to convert structural schema to CEL declarations",
        ],
    );
    let resource = json!({
        "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-validations": [{"rule": "self.metadata.name == 'a'"}],
    });
    check(&resource, &[]);
    // Of a schema that cannot be converted no paths are known.
    check(
        &json!({"type": "integer", "id": "x", "x-kubernetes-validations": [
            {"rule": "true", "fieldPath": ".x"},
        ]}),
        &[".id: Forbidden: id is not supported"],
    );
}

#[test]
fn what_an_old_specification_has_is_tolerated_in_a_new_one() {
    let plain = with_schema(&json!({"type": "integer"}));
    let unpruned =
        json!({"type": "object", "default": {"b": 1}, "properties": {"a": {"type": "string"}}});
    let set = json!({
        "type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"},
    });
    let keyed = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}}},
    });
    for schema in [&unpruned, &set, &keyed, &json!({"type": "text"})] {
        let old = with_schema(schema);
        let mut new = old.clone();
        new["spec"]["names"]["categories"] = json!(["all"]);
        assert_eq!(causes(&new, Some(&plain)).len(), 1, "{schema}");
        assert!(causes(&new, Some(&old)).is_empty(), "{schema}");
    }
}

#[test]
fn as_many_selectable_fields_as_before_are_tolerated() {
    let of = |count: usize| {
        let names = || (0..count).map(|at| format!("f{at}"));
        let properties: Object = names()
            .map(|name| (name, json!({"type": "string"})))
            .collect();
        let mut crd = with_schema(&json!({"type": "object", "properties": properties}));
        let paths = names().map(|name| json!({"jsonPath": format!(".spec.x.{name}")}));
        crd["spec"]["versions"][0]["selectableFields"] = paths.collect();
        crd
    };
    let old = of(9);
    let mut new = old.clone();
    new["spec"]["names"]["categories"] = json!(["all"]);
    let expected = "spec.selectableFields: Too many: 9: must have at most 8 items";
    assert_eq!(causes(&new, None), [expected]);
    assert!(causes(&new, Some(&old)).is_empty());
    assert_eq!(causes(&new, Some(&of(10))), [expected]);
}

#[test]
fn conversions_that_never_had_a_known_review_version_need_none() {
    let of = |versions: Value| {
        let mut crd = with_schema(&json!({"type": "integer"}));
        crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
            "clientConfig": {"url": "https://a.b"}, "conversionReviewVersions": versions,
        }});
        crd
    };
    let new = of(json!(["v8", "v9"]));
    assert_eq!(causes(&new, Some(&of(json!(["v1"])))).len(), 1);
    assert!(causes(&new, Some(&of(json!(["v9"])))).is_empty());
}

#[test]
fn warnings_of_deprecated_versions_can_be_printed() {
    let said = |deprecated: bool, warning: &str| {
        let mut crd = with_schema(&json!({"type": "integer"}));
        crd["spec"]["versions"][0]["deprecated"] = json!(deprecated);
        crd["spec"]["versions"][0]["deprecationWarning"] = json!(warning);
        let causes = causes(&crd, None);
        let detail = |text: &String| text.rsplit(": ").next().map(str::to_owned);
        causes.iter().filter_map(detail).collect::<Vec<_>>()
    };
    assert_eq!(
        said(false, "\n"),
        ["can only be set for deprecated versions"]
    );
    assert_eq!(said(true, ""), ["must not be an empty string"]);
    let unprintable =
        "must only contain printable UTF-8 characters; non-printable character found at index";
    assert_eq!(
        said(true, &format!("{}\u{a0}", "a".repeat(256))),
        [
            "must be <= 256 characters long".to_owned(),
            format!("{unprintable} 256")
        ]
    );
    assert_eq!(said(true, "é\n"), [format!("{unprintable} 2")]);
    assert!(said(true, "use v2 – now").is_empty());
}

#[test]
fn approvals_of_protected_groups_are_links() {
    let of = |approval: &str| {
        let mut crd = with_schema(&json!({"type": "integer"}));
        crd["metadata"] = json!({
            "name": "ams.a.k8s.io", "annotations": {"api-approved.kubernetes.io": approval},
        });
        crd["spec"]["group"] = json!("a.k8s.io");
        crd
    };
    for good in [
        "https://github.com/kubernetes/kubernetes/pull/78458",
        "http://u@h:80?q",
        "unapproved, experimental-only",
    ] {
        assert!(causes(&of(good), None).is_empty(), "{good}");
    }
    for bad in [
        "see https://x",
        "https://",
        "https:///a",
        "x",
        "https://a b/",
        "",
    ] {
        let found = causes(&of(bad), None);
        assert_eq!(found.len(), 1, "{bad}");
        assert!(
            found[0].starts_with("metadata.annotations[api-approved.kubernetes.io]: "),
            "{found:?}"
        );
        // What was approved as badly before stays as it is.
        assert!(causes(&of(bad), Some(&of(bad))).is_empty(), "{bad}");
        assert_eq!(causes(&of(bad), Some(&of("unapproved"))).len(), 1, "{bad}");
    }
}
