//! Placeholders, and what they stand for.

use std::collections::HashMap;
use std::sync::LazyLock;

use anyhow::{Context, Result};
use http::Request;
use kube::client::Body as HttpBody;
use regex::{Captures, Regex};
use serde_json::Value;

use crate::answer::{Answer, Names};
use crate::step::{Body, Step};

static OF_STEP: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\$\{(rv|uid|continue):(\d+)\}").expect("the pattern is correct"));

/// What placeholders stand for on one server.
#[derive(Debug)]
pub(crate) struct Fill {
    names: Names,
    answers: HashMap<usize, Value>,
    /// The newest object.
    latest: Value,
    newest: u64,
}

impl Fill {
    pub(crate) fn new(names: &Names) -> Self {
        Self {
            names: names.clone(),
            answers: HashMap::new(),
            latest: Value::Null,
            newest: 0,
        }
    }

    /// Keeps the answer to a step for later ones.
    pub(crate) fn learn(&mut self, id: usize, answer: &Answer) {
        let Some(body) = answer.json().filter(|_| answer.status < 300) else {
            return;
        };
        let version = body
            .pointer("/metadata/resourceVersion")
            .and_then(Value::as_str);
        let version = version.and_then(|version| version.parse().ok());
        self.newest = self.newest.max(version.unwrap_or(0));
        // Lists have metadata too, but no name.
        if body.pointer("/metadata/name").is_some() {
            self.latest = body.clone();
        }
        self.answers.insert(id, body.clone());
    }

    /// Returns the newest resource version among the answers.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Replaces the placeholders of a text.
    pub(crate) fn text(&self, text: &str) -> String {
        if !text.contains("${") {
            return text.to_owned();
        }
        let text = text
            .replace("${ns}", &self.names.namespace)
            .replace("${id}", &self.names.id);
        let value = |found: &Captures<'_>| {
            let answer = found[2]
                .parse()
                .ok()
                .and_then(|id: usize| self.answers.get(&id));
            let newest = self.newest.to_string();
            let (pointer, otherwise) = match &found[1] {
                // An unknown step gets values that are well-formed, so that requests are not refused for their form.
                "rv" => ("/metadata/resourceVersion", newest.as_str()),
                "uid" => ("/metadata/uid", "00000000-0000-0000-0000-000000000000"),
                _ => ("/metadata/continue", ""),
            };
            let value = answer.and_then(|answer| answer.pointer(pointer));
            value
                .and_then(Value::as_str)
                .unwrap_or(otherwise)
                .to_owned()
        };
        OF_STEP.replace_all(&text, value).into_owned()
    }

    /// Makes the request of a step.
    pub(crate) fn request(&self, step: &Step) -> Result<Request<HttpBody>> {
        let mut uri = self.text(&step.path);
        if !step.query.is_empty() {
            let mut query = form_urlencoded::Serializer::new(String::new());
            for (name, value) in &step.query {
                query.append_pair(name, &self.text(value));
            }
            uri = format!("{uri}?{}", query.finish());
        }
        let mut request = Request::builder().method(step.method.as_str()).uri(&uri);
        for (name, value) in &step.headers {
            request = request.header(name, value);
        }
        let body = self.body(step).unwrap_or_default();
        let request = request
            .header("user-agent", "differential/1")
            .body(HttpBody::from(body.into_bytes()));
        request.with_context(|| format!("{} {uri}", step.method))
    }

    /// Returns the body of a step as it is sent.
    pub(crate) fn body(&self, step: &Step) -> Option<String> {
        match &step.body {
            Body::None => None,
            Body::Text(text) => Some(self.text(text)),
            Body::Json(value) => Some(self.text(&value.to_string())),
            Body::Edited { of, edits } => {
                // What was refused is no object to begin with.
                let mut object = self.answers.get(of).unwrap_or(&self.latest).clone();
                for edit in edits {
                    edit.apply(&mut object);
                }
                Some(self.text(&object.to_string()))
            }
        }
    }
}
