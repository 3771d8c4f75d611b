//! Checks expressions against a genuine API server's answers in `answers.jsonl`.

use serde_json::{Value, json};

use super::testing::check_created;
use crate::structural::check_rules;

const POLICIES: &str = "admissionregistration.k8s.io/v1";

#[test]
fn expressions_are_refused_as_by_a_genuine_server() {
    let mut wrong = Vec::new();
    for line in include_str!("answers.jsonl").lines() {
        let (place, text, answer): (String, String, String) =
            serde_json::from_str(line).expect("it has three texts");
        let check = || check(&place, &text, &answer);
        if std::panic::catch_unwind(check).is_err() {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{} differ: {wrong:#?}", wrong.len());
}

#[test]
fn the_types_of_variables_are_known_where_they_are_used() {
    let one = |name: &str, text: &str| json!({"name": name, "expression": text});
    let overload = |place: &str, signature: &str| {
        format!("{place}: found no matching overload for '_==_' applied to '{signature}'")
    };
    for (variables, text, member, expected) in [
        (
            json!([one("a", "'x'")]),
            "variables.a == 1",
            "validations[0].expression",
            overload("13", "(string, int)"),
        ),
        (
            json!([one("a", "1"), one("b", "variables.a + 1")]),
            "variables.b == 'x'",
            "validations[0].expression",
            overload("13", "(int, string)"),
        ),
        (
            json!([one("a", "variables.b"), one("b", "1")]),
            "variables.b == 1",
            "variables[0].expression",
            "10: undefined field 'b'".to_owned(),
        ),
        (
            json!([
                one("a", "optional.of(1)"),
                one("b", "request.kind"),
                one("c", "int")
            ]),
            "variables.a == 1 && variables.b == 'x' && variables.c == 'x'",
            "",
            String::new(),
        ),
    ] {
        let members = json!({"variables": variables, "validations": [{"expression": text}]});
        let at_fault = if member.starts_with("variables") {
            "variables.b"
        } else {
            text
        };
        let expected = format!(
            "spec.{member}: Invalid value: {}: compilation failed: ERROR: <input>:1:{expected}",
            Value::from(at_fault)
        );
        let expected = [expected.as_str()];
        let expected = if member.is_empty() {
            &[][..]
        } else {
            &expected
        };
        check_created(
            POLICIES,
            "ValidatingAdmissionPolicy",
            policy(&members),
            expected,
        );
    }
}

#[test]
fn messages_and_annotations_are_texts() {
    for (members, field, expected) in [
        (
            json!({"validations": [{"expression": "true", "messageExpression": "object.a"}]}),
            "validations[0].messageExpression",
            "\"object.a\": must evaluate to string but got dyn",
        ),
        (
            json!({"validations": [{"expression": "true",
                "messageExpression": "'a' + authorizer.path('/').check('get').reason()"}]}),
            "validations[0].messageExpression",
            "\"'a' + authorizer.path('/').check('get').reason()\": compilation failed: ERROR: \
            <input>:1:7: undeclared reference to 'authorizer' (in container '')",
        ),
        (
            json!({"auditAnnotations": [{"key": "k", "valueExpression": "1"}]}),
            "auditAnnotations[0].valueExpression",
            "\"1\": must evaluate to one of [string null_type] but got int",
        ),
        (
            json!({"auditAnnotations": [{"key": "k", "valueExpression": " 'a' + 1 "}]}),
            "auditAnnotations[0].valueExpression",
            "\" 'a' + 1 \": compilation failed: ERROR: <input>:1:5: found no matching overload",
        ),
    ] {
        let expected = format!("spec.{field}: Invalid value: {expected}");
        let object = policy(&members);
        check_created(POLICIES, "ValidatingAdmissionPolicy", object, &[&expected]);
    }
}

#[test]
fn what_was_before_may_be_optional_and_messages_of_rules_are_texts() {
    let faults = |rule: Value| {
        let schema = json!({"type": "object", "properties": {"i": {"type": "integer"}},
            "x-kubernetes-validations": [rule]});
        let checked = check_rules(&schema, false);
        checked.faults().map(str::to_owned).collect::<Vec<_>>()
    };
    let optional = |rule: &str| faults(json!({"rule": rule, "optionalOldSelf": true}));
    assert_eq!(optional("oldSelf.hasValue()"), [""; 0]);
    assert!(optional("oldSelf.i == 1")[0].contains("'(optional_type(int), int)'"));
    let message = |text: &str| faults(json!({"rule": "true", "messageExpression": text}));
    assert_eq!(
        message("1"),
        ["messageExpression must evaluate to a string"]
    );
    assert!(message("self.i + 'a'")[0].starts_with(
        "messageExpression compilation failed: ERROR: <input>:1:8: found no matching overload"
    ));
}

#[test]
fn a_type_that_doubles_with_each_step_is_not_checked() {
    let map = ".map(a, {a: a})".repeat(60);
    let optional = ".optMap(a, a)".repeat(60);
    for text in [
        format!("[1]{map} == []"),
        format!("optional.of(1){optional}.hasValue()"),
    ] {
        let schema = json!({"type": "object", "x-kubernetes-validations": [{"rule": text}]});
        assert_eq!(check_rules(&schema, false).faults().count(), 0);
    }
}

fn check(place: &str, text: &str, answer: &str) {
    match place {
        "policy" => check_policy(
            "ValidatingAdmissionPolicy",
            &json!({"validations": [{"expression": text}]}),
            ("spec.validations[0].expression", text, answer),
        ),
        "apply" => check_mutation("ApplyConfiguration", "applyConfiguration", text, answer),
        "patch" => check_mutation("JSONPatch", "jsonPatch", text, answer),
        "match" => {
            let webhook = json!({"webhooks": [{
                "name": "a.example.com", "sideEffects": "None", "failurePolicy": "Ignore",
                "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/"},
                "matchPolicy": "Equivalent", "timeoutSeconds": 10,
                "matchConditions": [{"name": "x", "expression": text}],
            }]});
            check_object(
                (
                    "admissionregistration.k8s.io/v1",
                    "ValidatingWebhookConfiguration",
                ),
                webhook,
                (
                    "webhooks[0].matchConditions[0].expression",
                    text.trim(),
                    answer,
                ),
            );
        }
        "device" => check_object(
            ("resource.k8s.io/v1", "DeviceClass"),
            json!({"spec": {"selectors": [{"cel": {"expression": text}}]}}),
            ("spec.selectors[0].cel.expression", text, answer),
        ),
        _ => check_rule(text, answer),
    }
}

fn check_mutation(way: &str, member: &str, text: &str, answer: &str) {
    let mutation = json!({"patchType": way, member: {"expression": text}});
    let field = format!("spec.mutations[0].{member}.expression");
    check_policy(
        "MutatingAdmissionPolicy",
        &json!({"mutations": [mutation], "reinvocationPolicy": "Never"}),
        (&field, text.trim(), answer),
    );
}

fn check_policy(kind: &str, members: &Value, expected: (&str, &str, &str)) {
    check_object((POLICIES, kind), policy(members), expected);
}

/// Returns a policy with some members of its spec.
fn policy(members: &Value) -> Value {
    let mut spec = json!({"failurePolicy": "Ignore", "matchConstraints": {
        "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
        "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["pods"], "scope": "*"}],
    }});
    let members = members.as_object().expect("an object").clone();
    spec.as_object_mut().expect("an object").extend(members);
    json!({"metadata": {"name": "a"}, "spec": spec})
}

fn check_object(
    (api_version, kind): (&str, &str),
    object: Value,
    (field, text, answer): (&str, &str, &str),
) {
    let shown = Value::from(text);
    let expected = format!("{field}: Invalid value: {shown}: {answer}");
    let expected = [expected.as_str()];
    let expected = if answer.is_empty() {
        &[][..]
    } else {
        &expected
    };
    check_created(api_version, kind, object, expected);
}

fn check_rule(text: &str, answer: &str) {
    let spec = json!({"type": "object", "properties": {
        "i": {"type": "integer"}, "d": {"type": "number"}, "b": {"type": "boolean"},
        "s": {"type": "string"}, "n": {"type": "string", "nullable": true},
        "by": {"type": "string", "format": "byte"},
        "dt": {"type": "string", "format": "date-time"},
        "du": {"type": "string", "format": "duration"},
        "date": {"type": "string", "format": "date"},
        "l": {"type": "array", "items": {"type": "string"}},
        "ll": {"type": "array", "items": {"type": "object", "properties": {
            "a": {"type": "integer"}, "namespace": {"type": "string"}, "x-y": {"type": "string"}}}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "ios": {"x-kubernetes-int-or-string": true},
        "emb": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true},
    }});
    let schema = json!({"type": "object", "properties": {"spec": spec},
        "x-kubernetes-validations": [{"rule": text}]});
    let checked = check_rules(&schema, true);
    let faults: Vec<&str> = checked.faults().collect();
    let expected = [answer];
    let expected = if answer.is_empty() {
        &[][..]
    } else {
        &expected
    };
    assert_eq!(faults, expected, "{text}");
}
