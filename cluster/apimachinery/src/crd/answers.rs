//! What a genuine API server says of the costs of rules.
//!
//! `rules.jsonl` has a schema, and then rules for it. An answer is the factor by which the cost of the rule exceeds the
//! budget; it has so many digits only up to a factor of 1.5, so each rule is multiplied by a number of items.
//!
//! `schemas.jsonl` has whole schemas with rules, and what is said of each.

use serde_json::{Map, Value, json};

use super::tests::{ROOT, causes, with_root};

/// How many rules are put into one CRD.
const AT_ONCE: usize = 25;

const HELP: &str = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, \
    and strings are declared)";

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(serde_json::from_str);
    lines.map(|line| line.expect("it is JSON")).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("it is a text")
}

#[test]
fn rules_cost_what_a_genuine_server_estimates() {
    let lines = lines(include_str!("rules.jsonl"));
    let (schema, rules) = lines.split_first().expect("the first line is the schema");
    for rules in rules.chunks(AT_ONCE) {
        let (mut properties, mut expected) = (Map::new(), Vec::new());
        for (at, rule) in rules.iter().enumerate() {
            let name = format!("p{at:02}");
            let mut items = schema.clone();
            items["required"] = json!(["k"]);
            items["properties"]["k"] = json!({"type": "string"});
            // A message, because a rule may have several lines.
            items["x-kubernetes-validations"] = json!([{"rule": rule[0], "message": "m"}]);
            let list = json!({"type": "array", "maxItems": rule[1], "items": items,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]});
            if !text(&rule[2]).is_empty() {
                let path =
                    format!("{ROOT}.properties[{name}].items.x-kubernetes-validations[0].rule");
                expected.push(exceeded(&path, "estimated rule cost", text(&rule[2])));
            }
            properties.insert(name, list);
        }
        let crd = with_root(&json!({"type": "object", "properties": properties}));
        let causes = causes(&crd, None).into_iter();
        let of_single = |cause: &String| !cause.contains("estimated rule cost total");
        let causes: Vec<String> = causes.filter(of_single).collect();
        assert_eq!(causes, expected, "{rules:#?}");
    }
}

#[test]
fn costs_of_schemas_are_those_that_a_genuine_server_estimates() {
    for line in lines(include_str!("schemas.jsonl")) {
        let mut expected = Vec::new();
        for answer in line[1].as_array().expect("it is a list") {
            let path = format!("{ROOT}{}", text(&answer[0]));
            let what = match path.rsplit('.').next() {
                Some("rule") => "estimated rule cost",
                Some("messageExpression") => "estimated messageExpression cost",
                _ => {
                    "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
                }
            };
            expected.push(match text(&answer[1]) {
                "contributed" => format!(
                    "{path}: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire \
                     OpenAPIv3 schema"
                ),
                factor => exceeded(&path, what, factor),
            });
        }
        let mut found = causes(&with_root(&line[0]), None);
        // The server visits properties in any order.
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{}", line[0]);
    }
}

/// Returns what is said of a rule that is shown with its message.
fn invalid(rule: &str, message: &str, fault: &str) -> String {
    let (rule, message) = (json!(rule), json!(message));
    let rest = r#""Reason":null,"FieldPath":"","OptionalOldSelf":null"#;
    format!(
        r#"Invalid value: {{"Rule":{rule},"Message":"","MessageExpression":{message},{rest}}}: {fault}"#
    )
}

fn exceeded(path: &str, what: &str, factor: &str) -> String {
    format!("{path}: Forbidden: {what} exceeds budget by factor of {factor} {HELP}")
}

#[test]
fn costs_are_said_in_the_order_of_a_genuine_server() {
    let contributed = "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
    let rules = json!([
        {"rule": "self.s.matches('a') || oldSelf.s == 'b'", "messageExpression": "self.s.lowerAscii() + 1"},
        {"rule": "self.s.contains(self.s)", "optionalOldSelf": true},
        {"rule": "self.s + 1 == 'a'"},
        {"rule": "true", "messageExpression": "self.s.split('').map(x, x + self.s).join('')"},
    ]);
    let item = json!({"type": "object", "properties": {"s": {"type": "string"}}, "x-kubernetes-validations": rules});
    let schema = json!({"type": "object", "properties": {"l": {"type": "array", "items": item}}});
    let list = format!("{ROOT}.properties[l]");
    let path = |field: &str| format!("{list}.items.x-kubernetes-validations{field}");
    let expected = [
        exceeded(&path("[0].rule"), "estimated rule cost", "more than 100x"),
        format!(
            "{}: {}",
            path("[0].messageExpression"),
            invalid(
                "self.s.matches('a') || oldSelf.s == 'b'",
                "self.s.lowerAscii() + 1",
                "messageExpression compilation failed: ERROR: <input>:1:21: found no matching overload for '_+_' \
                 applied to '(string, int)'\n | self.s.lowerAscii() + 1\n | ....................^",
            ),
        ),
        format!(
            "{}: Invalid value: \"self.s.matches('a') || oldSelf.s == 'b'\": oldSelf cannot be used on the \
             uncorrelatable portion of the schema within {list}",
            path("[0].rule"),
        ),
        exceeded(&path("[1].rule"), "estimated rule cost", "more than 100x"),
        format!(
            "{}: Invalid value: true: may not be set if oldSelf is not used in rule",
            path("[1].optionalOldSelf"),
        ),
        format!(
            "{}: {}",
            path("[2].rule"),
            invalid(
                "self.s + 1 == 'a'",
                "",
                "compilation failed: ERROR: <input>:1:8: found no matching overload for '_+_' applied to \
                 '(string, int)'\n | self.s + 1 == 'a'\n | .......^",
            ),
        ),
        exceeded(
            &path("[3].messageExpression"),
            "estimated messageExpression cost",
            "more than 100x",
        ),
        format!("{}: {contributed}", path("[3].messageExpression")),
        format!("{}: {contributed}", path("[1].rule")),
        format!("{}: {contributed}", path("[0].rule")),
        exceeded(
            ROOT,
            "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema",
            "more than 100x",
        ),
    ];
    assert_eq!(causes(&with_root(&schema), None), expected);
}

#[test]
fn an_expensive_rule_may_stay_in_a_schema_that_stays() {
    // The total is checked whatever was before, so the rule must not exceed that.
    let rule = json!([{"rule": "self.contains(self)"}]);
    let text = json!({"type": "string", "maxLength": 20_000, "x-kubernetes-validations": rule});
    let before = with_root(&json!({"type": "object", "properties": {"s": text}}));
    let path = format!("{ROOT}.properties[s].x-kubernetes-validations[0].rule");
    let factor = |factor| [exceeded(&path, "estimated rule cost", factor)];
    assert_eq!(causes(&before, None), factor("6.4x"));
    // The specification changes, and the schema does not.
    let mut after = before.clone();
    after["spec"]["names"]["shortNames"] = json!(["s"]);
    assert_eq!(causes(&after, Some(&before)), [""; 0]);
    let root = "/spec/versions/0/schema/openAPIV3Schema";
    after.pointer_mut(root).expect("it is there")["description"] = json!("text");
    assert_eq!(causes(&after, Some(&before)), factor("6.4x"));
}
