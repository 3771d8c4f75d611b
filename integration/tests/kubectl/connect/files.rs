//! The files of a case: entries that are used, shadowed and not used.

use std::cmp::Ordering;

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::choose::pick;
use super::stage::Stage;

/// Kubeconfigs, in the order of `KUBECONFIG`.
pub(super) struct Files {
    files: Vec<Map<String, Value>>,
}

/// Entries that the context does not use: weight, list, entry, and whether kubectl refuses the whole file.
const UNUSED: [(u32, &str, &str, bool); 9] = [
    (
        2,
        "contexts",
        r#"{"name": "odd", "context": {"user": "u"}}"#,
        false,
    ),
    (
        2,
        "users",
        r#"{"name": "odd", "user": {"exec": {"env": [{"name": "A", "value": null}]}}}"#,
        false,
    ),
    (
        2,
        "users",
        r#"{"name": "odd", "user": {"exec": {"interactiveMode": "Sometimes"}}}"#,
        false,
    ),
    (
        1,
        "users",
        r#"{"name": "odd", "user": {"exec": {"interactiveMode": ""}}}"#,
        false,
    ),
    (
        2,
        "clusters",
        r#"{"cluster": {"server": "https://127.0.0.1:1"}}"#,
        false,
    ),
    (1, "clusters", r#"{"name": null}"#, false),
    (1, "users", r#"{"name": "odd", "user": {"token": 5}}"#, true),
    (
        1,
        "clusters",
        r#"{"name": "odd", "cluster": {"certificate-authority-data": "*"}}"#,
        true,
    ),
    (1, "contexts", r#""odd""#, true),
];

impl Files {
    pub(super) fn new(count: usize) -> Self {
        Self {
            files: vec![Map::new(); count],
        }
    }

    /// Adds the entries of the context, each to some file.
    pub(super) fn add_used(&mut self, rng: &mut Rng, stage: &Stage, cluster: &Value, user: &Value) {
        let other = format!("https://127.0.0.1:{}", stage.ports["two"]);
        let shadow = json!({"name": "k", "cluster": {"server": other}});
        self.add(
            rng,
            "clusters",
            [json!({"name": "k", "cluster": cluster}), shadow],
        );
        let shadow = json!({"name": "u", "user": {"token": "tok-shadow"}});
        self.add(rng, "users", [json!({"name": "u", "user": user}), shadow]);
        let names = [(40, json!("k")), (1, json!("other")), (1, json!(null))];
        let cluster = pick(rng, names);
        let names = [
            (30, json!("u")),
            (1, json!("nobody")),
            (1, json!("")),
            (1, json!(null)),
        ];
        let user = pick(rng, names);
        let context = json!({"cluster": cluster, "user": user, "namespace": ""});
        let shadow = json!({"name": "c", "context": {"cluster": "x", "user": "x"}});
        self.add(
            rng,
            "contexts",
            [json!({"name": "c", "context": context}), shadow],
        );
        let chosen = rng.usize(..self.files.len());
        for (at, file) in self.files.iter_mut().enumerate() {
            head(rng, at.cmp(&chosen), file);
        }
    }

    /// Adds an entry to a file, and one of the same name to the next file.
    fn add(&mut self, rng: &mut Rng, list: &str, entries: [Value; 2]) {
        let at = rng.usize(..self.files.len());
        for (file, entry) in self.files[at..].iter_mut().zip(entries) {
            insert(rng, file, list, entry);
        }
    }

    /// Adds an entry that is not used, or none; says whether kubectl refuses the file because of it.
    pub(super) fn add_unused(&mut self, rng: &mut Rng) -> bool {
        let none = [(20, None)].into_iter();
        let chosen = pick(rng, none.chain(UNUSED.map(|odd| (odd.0, Some(odd)))));
        let Some((_, list, entry, is_refused)) = chosen else {
            return false;
        };
        let at = rng.usize(..self.files.len());
        let entry = serde_json::from_str(entry).expect("it is JSON");
        insert(rng, &mut self.files[at], list, entry);
        is_refused
    }

    /// Writes the files.
    pub(super) fn texts(self, rng: &mut Rng) -> Vec<String> {
        let files = self.files.into_iter();
        files.map(|file| text(rng, &file.into())).collect()
    }
}

/// Adds an entry somewhere in a list.
fn insert(rng: &mut Rng, file: &mut Map<String, Value>, list: &str, entry: Value) {
    let list = file.entry(list).or_insert_with(|| json!([]));
    if list.is_null() {
        *list = json!([]);
    }
    let list = list.as_array_mut().expect("it is a list");
    let place = rng.usize(..=list.len());
    list.insert(place, entry);
}

/// Adds the members beside the lists; a file before or behind the one that chooses the context has others.
fn head(rng: &mut Rng, place: Ordering, file: &mut Map<String, Value>) {
    let current = match place {
        Ordering::Less => pick(
            rng,
            [(2, None), (1, Some(json!(""))), (1, Some(Value::Null))],
        ),
        Ordering::Equal => pick(
            rng,
            [(30, Some(json!("c"))), (1, Some(json!("gone"))), (1, None)],
        ),
        Ordering::Greater => pick(rng, [(1, None), (1, Some(json!("x")))]),
    };
    if let Some(current) = current {
        file.insert("current-context".to_owned(), current);
    }
    let version = json!({"apiVersion": "v1", "kind": "Config"});
    let head = pick(
        rng,
        [(3, version), (1, json!({})), (1, json!({"kind": ""}))],
    );
    file.extend(head.as_object().cloned().unwrap_or_default());
    let names = [
        (5, None),
        (1, Some("clusters")),
        (1, Some("users")),
        (1, Some("extensions")),
    ];
    let null = pick(rng, names);
    if let Some(name) = null.filter(|name| !file.contains_key(*name)) {
        file.insert(name.to_owned(), Value::Null);
    }
}

/// Writes a kubeconfig as JSON or YAML; in YAML a member may be there twice.
fn text(rng: &mut Rng, value: &Value) -> String {
    let yaml = lariat::operator::yaml(value).expect("it is JSON");
    let again = value["current-context"].as_str();
    match (rng.u32(..4), again) {
        (0, _) => value.to_string(),
        (1, Some(name)) => {
            format!("# by hand\ncurrent-context: first\n{yaml}current-context: {name:?}\n")
        }
        (2, _) => format!("---\n{yaml}"),
        _ => yaml,
    }
}
