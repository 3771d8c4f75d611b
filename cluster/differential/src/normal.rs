//! Takes out of answers what two servers never have in common.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use crate::answer::{Answer, Content, Names};

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is correct")
}

static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
/// A time of the run; those in manifests are of 2020.
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"20(2[1-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
});
static GENERATED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\bgen-[bcdfghjklmnpqrstvwxz2456789]{5}\b"));
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(resource ?version:? |resourceversion in (?:the )?(?:precondition|record) \(|resourceversion in (?:precondition|object meta): )\d+( \(\d+\))?(, current: \d+)?",
    )
});
/// An address of one of the ranges for Services, 10.0.0.0/24 and 10.96.0.0/12.
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b10\.(0\.0\.[1-9]\d*|(9[6-9]|10\d|11[01])\.\d+\.\d+)\b"));
/// A port of nodes inside of a text.
static NODE_PORT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(:|TCP |UDP |Duplicate value: )3([01]\d{3}|2[0-7]\d{2})\b"));
/// A character that Go's `%q` escapes; texts of custom types have it as it is.
static ESCAPED: LazyLock<Regex> = LazyLock::new(|| pattern(r"\\U([0-9a-f]{8})"));
static TOKEN: LazyLock<Regex> = LazyLock::new(|| pattern(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"));
static AGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\d+s$"));
static HOST: LazyLock<Regex> = LazyLock::new(|| pattern(r"127\.0\.0\.1:\d+"));

/// What one server has named so far: the first uid in the answer to step 3 is `uid3.1`, wherever it is met again.
#[derive(Debug)]
pub(crate) struct Normal<'a> {
    names: &'a Names,
    uids: Numbers,
    versions: Numbers,
}

/// Returns the character of a number.
fn unescaped(number: &str) -> String {
    let character = u32::from_str_radix(number, 16)
        .ok()
        .and_then(char::from_u32);
    character.map_or_else(|| number.to_owned(), String::from)
}

/// Returns whether a list is one of the kinds of a group.
fn is_discovery(list: &[Value]) -> bool {
    list.iter().all(|each| each["verbs"].is_array())
}

/// Names for texts that a server makes up.
#[derive(Debug)]
struct Numbers {
    name: &'static str,
    known: HashMap<String, String>,
    step: usize,
    /// How many are new in the answer to the step.
    count: usize,
}

impl<'a> Normal<'a> {
    pub(crate) fn new(names: &'a Names) -> Self {
        Self {
            names,
            uids: Numbers::new("uid"),
            versions: Numbers::new("rv"),
        }
    }

    /// Normalises the answer to a step; answers are passed in their order.
    pub(crate) fn answer(&mut self, step: usize, answer: &Answer) -> Answer {
        self.uids.begin(step);
        self.versions.begin(step);
        let content = match &answer.content {
            Content::Json(value) => Content::Json(self.value(value, "")),
            Content::Text(text) => Content::Text(self.text(text)),
            Content::Events(events) => Content::Events(self.events(events)),
        };
        Answer {
            status: answer.status,
            content_type: answer.content_type.clone(),
            warnings: answer
                .warnings
                .iter()
                .map(|text| self.warning(text))
                .collect(),
            content,
        }
    }

    /// Takes the text out of a warning header.
    fn warning(&mut self, header: &str) -> String {
        // As NewWarningHeader in Go writes it: code, agent and the text in quotes.
        let quoted = header.strip_prefix("299 - ").unwrap_or(header);
        let text = serde_json::from_str(quoted).unwrap_or_else(|_| quoted.to_owned());
        self.text(&text)
    }

    /// Periodic bookmarks come when they come.
    fn events(&mut self, events: &[Value]) -> Vec<Value> {
        let is_kept = |event: &&Value| {
            let annotations = event.pointer("/object/metadata/annotations");
            let ends_state = annotations
                .is_some_and(|annotations| annotations.get("k8s.io/initial-events-end").is_some());
            event["type"] != "BOOKMARK" || ends_state
        };
        let kept: Vec<&Value> = events.iter().filter(is_kept).collect();
        kept.into_iter()
            .map(|event| self.value(event, ""))
            .collect()
    }

    fn value(&mut self, value: &Value, name: &str) -> Value {
        match value {
            Value::String(text) if name == "continue" && !text.is_empty() => "<continue>".into(),
            Value::String(text) if name == "cells" && AGE.is_match(text) => "<age>".into(),
            // In these members an address need not be in the range of this server.
            Value::String(text) if name.starts_with("clusterIP") && text.starts_with("10.") => {
                "<ip>".into()
            }
            Value::String(text) => self.text(text).into(),
            Value::Number(number) if name.to_lowercase().ends_with("nodeport") => {
                match number.as_u64() {
                    // Smaller ones are from a manifest, since no server chooses them.
                    Some(30000..) => "<nodePort>".into(),
                    _ => value.clone(),
                }
            }
            Value::Array(list) if name == "managedFields" => self.managers(list),
            // A genuine server lists the kinds of a group in random order.
            Value::Array(list) if name == "resources" && is_discovery(list) => {
                let mut list: Vec<Value> = list.iter().map(|each| self.value(each, name)).collect();
                for each in &mut list {
                    if let Some(Value::Array(verbs)) = each.get_mut("verbs") {
                        verbs.sort_by_key(Value::to_string);
                    }
                }
                list.sort_by_key(|each| each["name"].to_string());
                list.into()
            }
            Value::Array(list) => list.iter().map(|item| self.value(item, name)).collect(),
            Value::Object(object) => self.object(object),
            other => other.clone(),
        }
    }

    fn object(&mut self, object: &Map<String, Value>) -> Value {
        // Versions of objects are named like uids. That of a list is the version of the whole server.
        let is_object = object.contains_key("uid") || object.contains_key("name");
        let members = object.iter().map(|(name, value)| {
            let normal = match value {
                Value::String(version) if name == "resourceVersion" && is_object => {
                    self.versions.name(version)
                }
                Value::String(version) if name == "resourceVersion" && !version.is_empty() => {
                    "<rv>".to_owned()
                }
                _ => return (self.text(name), self.value(value, name)),
            };
            (name.clone(), normal.into())
        });
        Value::Object(members.collect())
    }

    /// The entries of managers, by who they are.
    fn managers(&mut self, list: &[Value]) -> Value {
        let mut entries = Map::new();
        for entry in list {
            let text = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
            let mut key = format!(
                "{} {} {}",
                text("manager"),
                text("operation"),
                text("subresource")
            );
            // A manager has an entry per version of the API too.
            while entries.contains_key(&key) {
                key.push('+');
            }
            let entry = self.value(entry, "");
            entries.insert(key, entry);
        }
        Value::Object(entries)
    }

    fn text(&mut self, text: &str) -> String {
        // Names first, as a later pattern may match a part of one.
        let text = text
            .replace(&self.names.id, "ID")
            .replace(&self.names.namespace, "NS");
        let text = UID.replace_all(&text, |found: &Captures<'_>| self.uids.name(&found[0]));
        let time = |found: &Captures<'_>| {
            format!(
                "<time{}{}>",
                if found.get(2).is_some() { ".6" } else { "" },
                &found[3]
            )
        };
        let text = TIME.replace_all(&text, time);
        let text = GENERATED.replace_all(&text, "gen-<suffix>");
        let text = VERSION.replace_all(&text, "${1}<rv>");
        let text = ADDRESS.replace_all(&text, "<ip>");
        let text = NODE_PORT.replace_all(&text, "${1}<nodePort>");
        let text = ESCAPED.replace_all(&text, |found: &Captures<'_>| unescaped(&found[1]));
        let text = HOST.replace_all(&text, "<host>");
        TOKEN.replace_all(&text, "<token>").into_owned()
    }
}

impl Numbers {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            known: HashMap::new(),
            step: 0,
            count: 0,
        }
    }

    fn begin(&mut self, step: usize) {
        self.step = step;
        self.count = 0;
    }

    fn name(&mut self, text: &str) -> String {
        // What no server makes up, or is named already, stays as it is.
        let is_given = matches!(text, "" | "0" | "1")
            || ["<", "00000000", "11111111"]
                .iter()
                .any(|begin| text.starts_with(begin));
        if is_given {
            return text.to_owned();
        }
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        self.count += 1;
        let name = format!("<{}{}.{}>", self.name, self.step, self.count);
        self.known.insert(text.to_owned(), name.clone());
        name
    }
}
