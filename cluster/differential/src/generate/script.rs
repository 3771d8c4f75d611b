//! A sequence that is being written.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::step::{Body, Cleanup, How, Step};

/// What objects of a sequence are called.
pub(super) const SHORTS: [&str; 3] = ["a", "b", "c"];

/// A sequence that is being written.
#[derive(Debug)]
pub(super) struct Script<'a> {
    pub(super) random: &'a mut Rng,
    pub(super) kind: &'a Kind,
    pub(super) steps: Vec<Step>,
    pub(super) cleanup: Vec<Cleanup>,
    /// By the object: the last step that answers it, if all goes well.
    pub(super) last: [Option<usize>; 3],
}

impl<'a> Script<'a> {
    pub(super) fn new(random: &'a mut Rng, kind: &'a Kind) -> Self {
        Self {
            random,
            kind,
            steps: Vec::new(),
            cleanup: Vec::new(),
            last: [None; 3],
        }
    }

    /// Returns whether something of this probability, in a hundred, happens.
    pub(super) fn chance(&mut self, percent: u32) -> bool {
        self.random.u32(..100) < percent
    }

    pub(super) fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.random.usize(..list.len())].clone()
    }

    /// Adds a step; returns its id.
    pub(super) fn step(&mut self, verb: &str, method: &str, path: &str, body: Body) -> usize {
        let id = self.steps.len();
        let has_body = !matches!(body, Body::None);
        let mut headers = Vec::new();
        if has_body {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        self.steps.push(Step {
            id,
            kind: self.kind.kind.clone(),
            verb: verb.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            query: Vec::new(),
            headers,
            body,
            how: How::Answer,
        });
        id
    }

    fn current(&mut self) -> &mut Step {
        self.steps.last_mut().expect("a step was added")
    }

    /// Adds a parameter to the last step.
    pub(super) fn query(&mut self, name: &str, value: &str) {
        self.current()
            .query
            .push((name.to_owned(), value.to_owned()));
    }

    /// Sets a header of the last step.
    pub(super) fn header(&mut self, name: &str, value: &str) {
        let headers = &mut self.current().headers;
        headers.retain(|(each, _)| each != name);
        headers.push((name.to_owned(), value.to_owned()));
    }

    /// Sets what is made of the answer to the last step.
    pub(super) fn how(&mut self, how: How) {
        self.current().how = how;
    }

    /// Returns the name of an object.
    pub(super) fn name(&self, which: usize) -> String {
        let given = self.kind.manifests[0].pointer("/metadata/name");
        match given.and_then(Value::as_str) {
            Some(name) => name.replace("${short}", SHORTS[which]),
            None if self.kind.namespaced => SHORTS[which].to_owned(),
            None => format!("${{id}}-{}", SHORTS[which]),
        }
    }

    /// Returns the path of an object.
    pub(super) fn path(&self, which: usize) -> String {
        format!("{}/{}", self.kind.collection(), self.name(which))
    }

    /// Returns a manifest of the kind, with name and labels.
    pub(super) fn manifest(&mut self, which: usize) -> Value {
        let manifests = &self.kind.manifests;
        let place = self.random.usize(..manifests.len());
        let text = manifests[place]
            .to_string()
            .replace("${short}", SHORTS[which]);
        let mut manifest: Value = serde_json::from_str(&text).expect("it was JSON");
        manifest["metadata"]["name"] = self.name(which).into();
        let labels = manifest["metadata"]["labels"].take();
        let mut labels = if labels.is_null() { json!({}) } else { labels };
        labels["run"] = "${id}".into();
        labels["app"] = SHORTS[which].into();
        manifest["metadata"]["labels"] = labels;
        manifest
    }

    /// Notes that an object may be left behind.
    pub(super) fn leaves(&mut self, which: usize) {
        let cleanup = if self.kind.namespaced {
            Cleanup::Collection(self.kind.collection())
        } else {
            Cleanup::Object(self.path(which))
        };
        if !self.cleanup.contains(&cleanup) {
            self.cleanup.push(cleanup);
        }
    }

    /// Adds, sometimes, the parameters that every write may have.
    pub(super) fn write_options(&mut self) {
        match self.random.u32(..10) {
            0 => self.query("fieldValidation", "Strict"),
            1 => self.query("fieldValidation", "Ignore"),
            2 => self.query("fieldValidation", "Warn"),
            _ => {}
        }
        match self.random.u32(..40) {
            0..10 => self.query("fieldManager", "m1"),
            10..20 => self.query("fieldManager", "m2"),
            20 => self.query("dryRun", "All"),
            21 => self.query("dryRun", "Bad"),
            22 => self.query("fieldValidation", "Nonsense"),
            23 => self.query("fieldManager", &"m".repeat(129)),
            24 => self.query("pretty", "true"),
            _ => {}
        }
    }
}
