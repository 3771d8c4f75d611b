//! What is different in the answers of two servers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::answer::{Answer, Content, Names};
use crate::normal::Normal;
use crate::step::{How, Sequence, Step};

static QUOTED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#""(\\.|[^"\\])*""#).expect("the pattern is correct"));
static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"-?\d+(\.\d+)?").expect("the pattern is correct"));
static INDEX: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[[^\]]*\]").expect("the pattern is correct"));

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The id of the step.
    pub step: usize,
    /// What differences of one cause have in common.
    pub class: String,
    /// What the genuine server says.
    pub genuine: String,
    /// What the embedded cluster says.
    pub lariat: String,
}

/// What a sequence showed.
#[derive(Debug, Default)]
pub struct Comparison {
    /// The differences, in the order of the steps.
    pub differences: Vec<Difference>,
    /// The requests that the genuine server refused.
    pub refused: Refusals,
}

/// How many requests the two servers refused for the same reasons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Requests that the genuine server refused.
    pub genuine: usize,
    /// Those of them to which both gave the same status, reason and set of causes, by reason and field.
    pub same: usize,
}

/// Compares the answers to a sequence.
///
/// After a write that one server alone carried out nothing is compared any more: all that follows would differ. What is
/// made of an answer that only one server gave, as that to a dry run, is not compared either.
#[must_use]
pub fn compare(
    sequence: &Sequence,
    names: &Names,
    genuine: &[Answer],
    lariat: &[Answer],
) -> Comparison {
    let (mut left, mut right) = (Normal::new(names), Normal::new(names));
    let are_apart = answers_part(sequence, genuine, lariat);
    let mut found = Vec::new();
    let mut refused = Refusals::default();
    let mut given_by_one: Vec<usize> = Vec::new();
    for ((step, genuine), lariat) in sequence.steps.iter().zip(genuine).zip(lariat) {
        // Also answers that are not compared are normalised, since they name uids that are met later.
        let (genuine, lariat) = (left.answer(step.id, genuine), right.answer(step.id, lariat));
        let is_of_version = |found: &Difference| found.class.contains(OTHER_VERSION);
        let mut pair = Pair {
            step,
            found: Vec::new(),
            has_other_version: found.iter().any(is_of_version),
        };
        // A watch that stays open sees what follows.
        // After a write on one server alone its events have to differ.
        let depends = given_by_one.iter().any(|id| step.refers_to(*id));
        if !depends && (step.how != How::Live || !are_apart) {
            pair.answers(&genuine, &lariat);
        }
        found.append(&mut pair.found);
        if is_refusal(&genuine) {
            refused.genuine += 1;
            refused.same += usize::from(reasons(&genuine) == reasons(&lariat));
        }
        if succeeded(&genuine) != succeeded(&lariat) {
            if step.writes() {
                break;
            }
            given_by_one.push(step.id);
        }
    }
    Comparison {
        differences: found,
        refused,
    }
}

fn is_refusal(answer: &Answer) -> bool {
    answer.status >= 400
}

/// Why a request is refused: the status, the reason, and the reason and field of each cause.
fn reasons(answer: &Answer) -> (u16, Option<&str>, BTreeSet<(&str, &str)>) {
    fn text<'a>(value: &'a Value, name: &str) -> &'a str {
        value[name].as_str().unwrap_or_default()
    }
    let status = answer.json();
    let causes = status.and_then(|status| status.pointer("/details/causes")?.as_array());
    let causes = causes.into_iter().flatten();
    let causes = causes.map(|cause| (text(cause, "reason"), text(cause, "field")));
    let reason = status.map(|status| text(status, "reason"));
    (answer.status, reason, causes.collect())
}

/// Returns whether one server alone carried out a write.
fn answers_part(sequence: &Sequence, genuine: &[Answer], lariat: &[Answer]) -> bool {
    let answers = genuine.iter().zip(lariat);
    let mut steps = sequence.steps.iter().zip(answers);
    steps.any(|(step, (genuine, lariat))| step.writes() && succeeded(genuine) != succeeded(lariat))
}

fn succeeded(answer: &Answer) -> bool {
    (200..300).contains(&answer.status)
}

/// What is in the class of a difference if one server alone made a new version.
const OTHER_VERSION: &str = "metadata.resourceVersion differs";

/// The answers to one step, while they are compared.
struct Pair<'a> {
    step: &'a Step,
    found: Vec<Difference>,
    /// Whether one server alone made a new version in an earlier step.
    has_other_version: bool,
}

impl Pair<'_> {
    fn add(&mut self, class: &str, genuine: impl Into<String>, lariat: impl Into<String>) {
        let class = format!("{} {class}", self.step.kind);
        // Ten items of a list with one mistake are one difference.
        if self.found.iter().any(|known| known.class == class) {
            return;
        }
        self.found.push(Difference {
            step: self.step.id,
            class,
            genuine: genuine.into(),
            lariat: lariat.into(),
        });
    }

    fn answers(&mut self, genuine: &Answer, lariat: &Answer) {
        if genuine.status != lariat.status {
            self.statuses(genuine, lariat);
            return;
        }
        if genuine.content_type != lariat.content_type {
            let class = format!(
                "header content-type: {} ≠ {}",
                genuine.content_type, lariat.content_type
            );
            self.add(&class, &genuine.content_type, &lariat.content_type);
        }
        self.sets("warning", &genuine.warnings, &lariat.warnings);
        match (&genuine.content, &lariat.content) {
            (Content::Json(genuine), Content::Json(lariat)) => self.documents(genuine, lariat),
            (Content::Events(genuine), Content::Events(lariat)) => self.events(genuine, lariat),
            (Content::Text(genuine), Content::Text(lariat)) if genuine == lariat => {}
            (genuine, lariat) => {
                self.add("body text", format!("{genuine:?}"), format!("{lariat:?}"))
            }
        }
    }

    /// Another status: named by what one of the two does not like.
    fn statuses(&mut self, genuine: &Answer, lariat: &Answer) {
        let codes = format!("{}≠{}", genuine.status, lariat.status);
        let (who, refusal) = match (is_refusal(genuine), is_refusal(lariat)) {
            (true, false) => ("refuses", genuine),
            (false, true) => ("accepts", lariat),
            _ => ("answers", genuine),
        };
        let mut reasons = causes(refusal);
        // The cause with the field `<nil>` only says that rules were not checked because of other causes.
        reasons.retain(|reason| !reason.contains("<nil>"));
        if reasons.is_empty() {
            reasons.push(message(refusal));
        }
        for reason in &reasons {
            // A conflict follows from a difference that is reported already.
            let follows = self.has_other_version && reason.contains("the object has been modified");
            let after = if follows {
                " after another version"
            } else {
                ""
            };
            let class = format!("{who} {codes} {}{after}: {}", self.step.verb, shape(reason));
            self.add(&class, line(genuine), line(lariat));
        }
    }

    fn sets(&mut self, part: &str, genuine: &[String], lariat: &[String]) {
        // As multisets: what one server says twice and the other once is a difference too.
        let mut left: Vec<&String> = Vec::new();
        let mut right: Vec<&String> = lariat.iter().collect();
        for text in genuine {
            match right.iter().position(|other| *other == text) {
                Some(place) => drop(right.remove(place)),
                None => left.push(text),
            }
        }
        let all = (genuine.join("; "), lariat.join("; "));
        for text in left {
            self.add(&format!("{part} missing: {}", shape(text)), &all.0, &all.1);
        }
        for text in right {
            self.add(&format!("{part} added: {}", shape(text)), &all.0, &all.1);
        }
    }

    fn documents(&mut self, genuine: &Value, lariat: &Value) {
        if genuine["kind"] == "Status" && lariat["kind"] == "Status" {
            self.refusals(genuine, lariat);
            return;
        }
        self.values("", genuine, lariat);
    }

    fn refusals(&mut self, genuine: &Value, lariat: &Value) {
        let (left, right) = (causes_of(genuine), causes_of(lariat));
        self.sets("cause", &left, &right);
        let sorted = |causes: &[String]| causes.iter().cloned().collect::<BTreeSet<_>>();
        let (mut genuine, mut lariat) = (genuine.clone(), lariat.clone());
        // With several causes the message is made of them, in an order that is partly chance.
        if left.len() > 1 || sorted(&left) != sorted(&right) {
            for status in [&mut genuine, &mut lariat] {
                status["message"] = Value::Null;
            }
        }
        for status in [&mut genuine, &mut lariat] {
            if let Some(details) = status["details"].as_object_mut() {
                details.remove("causes");
            }
        }
        if genuine["message"] != lariat["message"] {
            let text = |status: &Value| status["message"].as_str().unwrap_or_default().to_owned();
            let class = format!("message: {}", shape(&text(&genuine)));
            self.add(&class, text(&genuine), text(&lariat));
            // It is reported by its own class above, and must not be reported as a value again.
            genuine["message"] = lariat["message"].clone();
        }
        self.values("Status", &genuine, &lariat);
    }

    fn events(&mut self, genuine: &[Value], lariat: &[Value]) {
        let types = |events: &[Value]| -> Vec<String> {
            let types = events
                .iter()
                .map(|event| event["type"].as_str().unwrap_or("?"));
            types.map(str::to_owned).collect()
        };
        let (left, right) = (types(genuine), types(lariat));
        if left != right {
            let text = |events: &[Value]| serde_json::to_string(events).unwrap_or_default();
            // A server that writes an unchanged object makes a version that watches see and nothing else does.
            let class = if types(&changes(genuine)) == types(&changes(lariat)) {
                "events: a version without a change"
            } else {
                "events: another sequence"
            };
            self.add(class, text(genuine), text(lariat));
            return;
        }
        for (genuine, lariat) in genuine.iter().zip(lariat) {
            self.documents(&genuine["object"], &lariat["object"]);
        }
    }

    fn values(&mut self, path: &str, genuine: &Value, lariat: &Value) {
        match (genuine, lariat) {
            (genuine, lariat) if genuine == lariat => {}
            (Value::Object(left), Value::Object(right)) => {
                // In a fixed order, so that classes do not depend on the order in which members were written.
                let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
                for name in names {
                    let path = below(path, name);
                    match (left.get(name), right.get(name)) {
                        (Some(genuine), Some(lariat)) => self.values(&path, genuine, lariat),
                        (Some(genuine), None) => self.differ(&path, "missing", Some(genuine), None),
                        (None, lariat) => self.differ(&path, "added", None, lariat),
                    }
                }
            }
            // Items are compared by their places; with other lengths each would differ from the next one.
            (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
                for (genuine, lariat) in left.iter().zip(right) {
                    self.values(&format!("{path}[]"), genuine, lariat);
                }
            }
            (Value::Array(left), Value::Array(right)) => {
                let what = if left.len() > right.len() {
                    "has too few"
                } else {
                    "has too many"
                };
                self.differ(path, what, Some(genuine), Some(lariat));
            }
            _ => self.differ(path, "differs", Some(genuine), Some(lariat)),
        }
    }

    fn differ(&mut self, path: &str, what: &str, genuine: Option<&Value>, lariat: Option<&Value>) {
        let text = |value: Option<&Value>| value.map_or_else(|| "-".to_owned(), Value::to_string);
        // One mistake has one class, whether it is seen in a get, a list or a table.
        let path = path.strip_prefix("items[].").unwrap_or(path);
        let path = path.strip_prefix("rows[].object.").unwrap_or(path);
        let value = match what {
            "missing" | "added" => genuine.or(lariat).map(kind_of).unwrap_or_default(),
            "differs" => format!(
                "{}≠{}",
                kind_of(genuine.unwrap_or(&Value::Null)),
                kind_of(lariat.unwrap_or(&Value::Null))
            ),
            _ => String::new(),
        };
        let class = format!("{path} {what} {value}");
        self.add(class.trim_end(), text(genuine), text(lariat));
    }
}

/// Returns the events but for those that repeat a state under another version.
fn changes(events: &[Value]) -> Vec<Value> {
    let mut last: BTreeMap<String, Value> = BTreeMap::new();
    let mut changes = Vec::new();
    for event in events {
        // A watch of tables sends a row of one.
        let row = event["object"].pointer("/rows/0/object");
        let mut state = row.unwrap_or(&event["object"]).clone();
        let uid = state["metadata"]["uid"].to_string();
        if let Some(metadata) = state["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        let is_repeated = event["type"] == "MODIFIED" && last.get(&uid) == Some(&state);
        if !is_repeated {
            changes.push(event.clone());
        }
        last.insert(uid, state);
    }
    changes
}

/// Extends a path; what objects are keyed by is left out of it.
fn below(path: &str, name: &str) -> String {
    let name = if path.ends_with("managedFields") {
        // The key is `manager operation subresource`, as `Normal::managers` makes it.
        let words: Vec<&str> = name.split(' ').collect();
        let (operation, subresource) = (words.get(1).unwrap_or(&""), words.get(2).unwrap_or(&"-"));
        format!("{operation} {subresource}")
    } else if name.starts_with("k:{") {
        "k:{}".to_owned()
    } else if name.starts_with("v:") {
        "v:".to_owned()
    } else {
        name.to_owned()
    };
    if path.is_empty() {
        name
    } else {
        format!("{path}.{name}")
    }
}

/// Returns short values as they are, of others the type.
fn kind_of(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) if number.as_i64() == Some(0) => "0".to_owned(),
        Value::Number(_) => "number".to_owned(),
        // Placeholders of the normal form, without their numbers.
        Value::String(text) if text.starts_with('<') => {
            text.trim_end_matches(['>', '.'])
                .trim_end_matches(|each: char| each.is_ascii_digit() || each == '.')
                .to_owned()
                + ">"
        }
        Value::String(text) if text.len() <= 12 => format!("{text:?}"),
        Value::String(_) => "text".to_owned(),
        Value::Array(list) if list.is_empty() => "[]".to_owned(),
        Value::Array(_) => "list".to_owned(),
        Value::Object(object) if object.is_empty() => "{}".to_owned(),
        Value::Object(_) => "object".to_owned(),
    }
}

/// Takes the values out of a text.
fn shape(text: &str) -> String {
    // Indexes first, then quoted texts, which may have numbers in them.
    let text = INDEX.replace_all(text, "[]");
    let text = QUOTED.replace_all(&text, "\"…\"");
    let text = NUMBER.replace_all(&text, "#");
    text.chars()
        .take(200)
        .collect::<String>()
        .replace('\n', " ")
}

fn causes(answer: &Answer) -> Vec<String> {
    answer.json().map(causes_of).unwrap_or_default()
}

fn causes_of(status: &Value) -> Vec<String> {
    let causes = status.pointer("/details/causes").and_then(Value::as_array);
    let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
    let written = |cause: &Value| {
        format!(
            "{} {}: {}",
            text(cause, "reason"),
            text(cause, "field"),
            text(cause, "message")
        )
    };
    // Where the Go code checks something twice, a cause is there twice.
    let mut seen = BTreeSet::new();
    let texts = causes.into_iter().flatten().map(written);
    texts.filter(|text| seen.insert(text.clone())).collect()
}

fn message(answer: &Answer) -> String {
    let message = answer.json().and_then(|status| status["message"].as_str());
    match &answer.content {
        Content::Text(text) => text.clone(),
        _ => message.unwrap_or_default().to_owned(),
    }
}

/// Returns an answer in a line.
fn line(answer: &Answer) -> String {
    let message = message(answer);
    let text = if message.is_empty() {
        format!("{:?}", answer.content)
    } else {
        message
    };
    let text: String = text.chars().take(600).collect();
    format!("{} {text}", answer.status)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::step::{Body, How};

    fn answer(status: u16, body: Value) -> Answer {
        Answer {
            status,
            content: Content::Json(body),
            ..Answer::default()
        }
    }

    fn step(id: usize) -> Step {
        Step {
            id,
            kind: "Pod".to_owned(),
            verb: "create".to_owned(),
            method: "POST".to_owned(),
            path: String::new(),
            query: Vec::new(),
            headers: Vec::new(),
            body: Body::None,
            how: How::Answer,
        }
    }

    fn classes(genuine: Answer, lariat: Answer) -> Vec<String> {
        classes_of(vec![step(3)], &[genuine], &[lariat])
    }

    fn classes_of(steps: Vec<Step>, genuine: &[Answer], lariat: &[Answer]) -> Vec<String> {
        let sequence = Sequence {
            number: 0,
            steps,
            cleanup: Vec::new(),
            reusable: true,
        };
        let names = Names {
            namespace: "n1".to_owned(),
            id: "d1".to_owned(),
        };
        let found = compare(&sequence, &names, genuine, lariat);
        found
            .differences
            .into_iter()
            .map(|difference| difference.class)
            .collect()
    }

    #[test]
    fn what_is_made_of_an_answer_that_one_server_gave_is_not_compared() {
        let dry_run = Step {
            query: vec![("dryRun".to_owned(), "All".to_owned())],
            ..step(3)
        };
        let dependent = Step {
            path: "/api/v1/pods/${uid:3}".to_owned(),
            ..step(4)
        };
        let refused = |message: &str| answer(409, json!({"kind": "Status", "message": message}));
        let given = || answer(200, json!({"kind": "Pod"}));
        let found = |steps: Vec<Step>| {
            classes_of(steps, &[refused("x"), refused("y")], &[given(), given()]).len()
        };
        assert_eq!(found(vec![dry_run.clone(), dependent]), 1);
        assert_eq!(found(vec![dry_run, step(4)]), 2);
    }

    #[test]
    fn refusals_are_the_same_if_status_reason_and_fields_are() {
        let refusal = |status: u16, fields: &[&str]| {
            let cause = |field: &&str| json!({"reason": "FieldValueInvalid", "field": field});
            let causes: Vec<Value> = fields.iter().map(cause).collect();
            answer(
                status,
                json!({"kind": "Status", "reason": "Invalid", "message": status, "details": {"causes": causes}}),
            )
        };
        let genuine = refusal(422, &["spec.a", "spec.b"]);
        assert_eq!(
            reasons(&genuine),
            reasons(&refusal(422, &["spec.b", "spec.a"]))
        );
        assert_ne!(reasons(&genuine), reasons(&refusal(422, &["spec.a"])));
        assert_ne!(
            reasons(&genuine),
            reasons(&refusal(400, &["spec.a", "spec.b"]))
        );
    }

    #[test]
    fn what_two_servers_never_share_is_no_difference() {
        let object = |uid: &str, version: &str, time: &str| {
            let managers = json!([{"manager": "m", "operation": "Apply", "time": time}]);
            answer(
                200,
                json!({"metadata": {"uid": uid, "resourceVersion": version, "managedFields": managers}}),
            )
        };
        let one = object(
            "0f8fad5b-d9cb-469f-a165-70867728950e",
            "12",
            "2026-01-01T00:00:00Z",
        );
        let other = object(
            "7c9e6679-7425-40de-944b-e07fc1f90ae7",
            "99",
            "2027-01-01T00:00:00Z",
        );
        assert_eq!(classes(one, other), [""; 0]);
    }

    fn events(events: &[(&str, i32)]) -> Answer {
        let events = events.iter().enumerate();
        let event = |(version, (name, a)): (usize, &(&str, i32))| {
            let metadata = json!({"uid": "u", "resourceVersion": version.to_string()});
            json!({"type": name, "object": {"metadata": metadata, "a": a}})
        };
        Answer {
            status: 200,
            content: Content::Events(events.map(event).collect()),
            ..Answer::default()
        }
    }

    /// Makes each event one of a watch of tables.
    fn in_tables(answer: Answer) -> Answer {
        let Content::Events(mut events) = answer.content else {
            panic!("no events");
        };
        for event in &mut events {
            event["object"] = json!({"kind": "Table", "rows": [{"object": event["object"]}]});
        }
        Answer {
            content: Content::Events(events),
            ..answer
        }
    }

    #[test]
    fn differences_of_one_cause_have_one_class() {
        let refusal = |field: &str| {
            let cause = json!({"reason": "FieldValueInvalid", "field": field, "message": "Invalid value: \"x7\": bad"});
            answer(
                422,
                json!({"kind": "Status", "details": {"causes": [cause]}}),
            )
        };
        let items = |items: Value| answer(200, json!({"items": items}));
        let cases = [
            (
                refusal("spec.a[0].b"),
                answer(201, json!({})),
                "Pod refuses 422≠201 create: FieldValueInvalid spec.a[].b: Invalid value: \"…\": bad",
            ),
            (
                refusal("a"),
                refusal("b"),
                "Pod cause missing: FieldValueInvalid a: Invalid value: \"…\": bad",
            ),
            (
                items(json!([{"a": 0}])),
                items(json!([{}])),
                "Pod a missing 0",
            ),
            (
                items(json!([])),
                items(json!([{}])),
                "Pod items has too many",
            ),
            (
                events(&[("ADDED", 1), ("MODIFIED", 1)]),
                events(&[("ADDED", 1)]),
                "Pod events: a version without a change",
            ),
            (
                in_tables(events(&[("ADDED", 1), ("MODIFIED", 1)])),
                in_tables(events(&[("ADDED", 1)])),
                "Pod events: a version without a change",
            ),
            (
                events(&[("ADDED", 1), ("MODIFIED", 2)]),
                events(&[("ADDED", 1)]),
                "Pod events: another sequence",
            ),
        ];
        for (genuine, lariat, class) in cases {
            assert_eq!(classes(genuine, lariat)[0], class);
        }
    }

    #[test]
    fn a_refusal_whose_rules_were_not_checked_is_a_difference() {
        let causes =
            json!([{"reason": "FieldValueInvalid", "field": "<nil>", "message": "not checked"}]);
        let refusal =
            json!({"kind": "Status", "message": "no rules", "details": {"causes": causes}});
        let found = classes(answer(422, refusal), answer(201, json!({})));
        assert_eq!(found, ["Pod refuses 422≠201 create: no rules"]);
    }
}
