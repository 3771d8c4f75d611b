//! Rules in CEL: whether they are admitted to a schema, and objects held against them.

use http::Method;
use lariat_cluster::fuzzing::{faults_of_rules, validate};
use serde_json::{Value, json};

use crate::cluster::{JSON, with_cluster};
use crate::input::split;

const DEFINITIONS: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All&fieldManager=fuzz";

/// The first line is a rule, the second one a message expression, the rest an object.
pub(crate) fn run(data: &[u8]) {
    let (rule, rest) = split(data);
    let (message, object) = split(rest);
    let (Ok(rule), Ok(message)) = (std::str::from_utf8(rule), std::str::from_utf8(message)) else {
        return;
    };
    if repeats(rule) + repeats(message) > MOST_REPEATS {
        return;
    }
    let mut validation = json!({"rule": rule});
    if !message.is_empty() {
        validation["messageExpression"] = message.into();
    }
    let schema = schema(&validation);
    let admitted = admitted(&schema);
    let faults = faults_of_rules(&schema);
    // What a definition allows beyond this depends on more than one rule; what has faults is never admitted.
    assert!(
        !admitted || faults == 0,
        "a rule with {faults} faults is admitted"
    );
    if !admitted {
        return;
    }
    let object = serde_json::from_slice(object).unwrap_or_else(|_| json!({"spec": {"n": 1}}));
    for old in [None, Some(&object)] {
        let causes = validate(&schema, &object, old);
        assert_eq!(
            validate(&schema, &object, old),
            causes,
            "a rule is deterministic"
        );
    }
}

/// How many macros that repeat something an input may have.
///
/// The cluster does not estimate what rules cost, as `docs/conformance.md` says, and each such macro inside of another
/// multiplies the time.
const MOST_REPEATS: usize = 3;

fn repeats(expression: &str) -> usize {
    let macros = ["all", "exists", "exists_one", "existsOne", "map", "filter"];
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| macros.contains(word)).count()
}

/// A schema with one rule at its root.
fn schema(validation: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {
                "n": {"type": "integer"},
                "x": {"type": "number"},
                "on": {"type": "boolean"},
                "name": {"type": "string", "maxLength": 20},
                "size": {"x-kubernetes-int-or-string": true},
                "list": {"type": "array", "maxItems": 8, "items": {"type": "string"}},
                "map": {"type": "object", "maxProperties": 8, "additionalProperties": {"type": "string"}},
                "items": {"type": "array", "maxItems": 8, "items": {
                    "type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                }},
            }},
        },
        "x-kubernetes-validations": [validation],
    })
}

/// Asks the cluster whether it would take a definition with a schema.
fn admitted(schema: &Value) -> bool {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.demo.dev"},
        "spec": {
            "group": "demo.dev", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    let body = definition.to_string();
    let answer =
        with_cluster(|tested| tested.send(Method::POST, DEFINITIONS, JSON, body.as_bytes()));
    match answer.code {
        201 => true,
        422 => false,
        code => panic!("{code}: {}", answer.body),
    }
}
