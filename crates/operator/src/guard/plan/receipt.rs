//! A dry run in progress, and the evaluation of its answer.

use std::sync::Arc;

use lariat_cache::{
    CachedObject, GateDecision, PendingWrite, WriteReceipt, WriteResult, WriteVerb,
};
use lariat_controller::{Gate, GatedWrite};
use lariat_core::ObjectKey;
use serde_json::{Map, Value};

use super::book::Book;
use super::write::What;
use crate::diff::Diff;

/// A dry run in progress.
struct Receipt {
    book: Book,
    what: What,
    namespace: Option<String>,
    /// The cached state before the write, if there is one.
    cached: Option<Arc<CachedObject>>,
    is_secret: bool,
}

/// Turns every write into a dry run, and records its answer.
pub(crate) struct PlanGate {
    book: Book,
}

impl PlanGate {
    pub(crate) fn new(book: Book) -> Self {
        Self { book }
    }
}

impl Gate for PlanGate {
    fn admit(&self, write: &GatedWrite<'_>) -> GateDecision {
        // The caller requests a dry run by itself, so nothing would be written.
        if write.write().is_dry_run() {
            return GateDecision::Pass;
        }
        GateDecision::DryRun(Box::new(Receipt::new(&self.book, write)))
    }
}

impl Receipt {
    fn new(book: &Book, write: &GatedWrite<'_>) -> Self {
        let pending = write.write();
        let what = What {
            reconciler: write.handler().map(ToOwned::to_owned),
            of: write.gvk().cloned().zip(write.key().cloned()),
            verb: pending.verb(),
            kind: kind(pending),
            key: pending.key(),
            subresource: pending.subresource().map(ToOwned::to_owned),
            diff: None,
            refused: None,
        };
        Self {
            book: book.clone(),
            what,
            namespace: pending.namespace().map(ToOwned::to_owned),
            // With metadata only, every other field would seem to be added.
            cached: pending.cached().filter(|object| object.has_content()),
            is_secret: pending.plural() == "secrets" && pending.api_path() == "/api/v1",
        }
    }

    /// Records the result of a successful dry run.
    fn answered(&mut self, mut answer: Value, before: Option<Value>, is_created: bool) {
        if self.what.key.is_none() && self.what.verb == WriteVerb::Create {
            self.name(&mut answer);
        }
        // A deletion is answered with the object or a Status. Neither is a new state of the object.
        let is_deletion = matches!(
            self.what.verb,
            WriteVerb::Delete | WriteVerb::DeleteCollection
        );
        if !is_deletion {
            self.compare(&answer, before, is_created);
        }
    }

    /// Records the name of a created object, which the request does not contain.
    fn name(&mut self, answer: &mut Value) {
        let text = |name: &str| answer.pointer(name).and_then(Value::as_str);
        if let Some((version, kind)) = text("/apiVersion").zip(text("/kind")) {
            self.what.kind = format!("{version} {kind}");
        }
        let made_up = text("/metadata/generateName").map(|begin| format!("{begin}*"));
        // A generated name differs each time. Without it, equal creations are equal in the plan too.
        let is_made_up = made_up.is_some();
        let name = made_up.or_else(|| text("/metadata/name").map(ToOwned::to_owned));
        let namespace = self.namespace.as_deref().unwrap_or_default();
        self.what.key = name.map(|name| ObjectKey::namespaced(namespace, &name));
        let metadata = answer.get_mut("metadata").filter(|_| is_made_up);
        if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
            metadata.remove("name");
        }
    }

    /// Records the changes.
    ///
    /// They are relative to the live state, or to the cached one if the live state could not be read.
    fn compare(&mut self, answer: &Value, before: Option<Value>, is_created: bool) {
        let old = if is_created {
            Some(Value::Object(Map::new()))
        } else {
            before.or_else(|| self.cached.as_ref().and_then(content))
        };
        // Some subresources are answered with another kind, which cannot be compared.
        let old = old.filter(|old| is_created || old.get("kind") == answer.get("kind"));
        let diff = |old| Diff::of(&old, answer, self.is_secret);
        self.what.diff = old.map(diff);
    }

    /// Returns whether the write is known to have no effect.
    fn is_nothing(&self, is_created: bool) -> bool {
        let diff = self.what.diff.as_ref();
        !is_created && diff.is_some_and(|diff| diff.changes.is_empty() && diff.left_out == 0)
    }
}

impl WriteReceipt for Receipt {
    fn ended(mut self: Box<Self>, end: &WriteResult<'_>) {
        match end {
            WriteResult::Answered {
                status,
                body,
                before,
                ..
            } => {
                let read = |json: &[u8]| serde_json::from_slice::<Value>(json).ok();
                let answer = body.and_then(read).unwrap_or_default();
                if status.is_success() {
                    // An apply answers 201 if it would create the object. Creating a subresource answers 201 too, but
                    // changes an existing object.
                    let is_created = status.as_u16() == 201 && self.what.subresource.is_none();
                    self.answered(answer, before.and_then(read), is_created);
                    if self.is_nothing(is_created) {
                        return;
                    }
                } else {
                    // The message about a Secret may quote its values.
                    let message = answer
                        .get("message")
                        .and_then(Value::as_str)
                        .filter(|_| !self.is_secret);
                    self.what.refused = Some(match message {
                        Some(message) => format!("{status}: {message}"),
                        None => status.to_string(),
                    });
                }
            }
            _ => self.what.refused = Some("it cannot be run dry".to_owned()),
        }
        let Self { book, what, .. } = *self;
        book.add(what);
    }
}

/// Returns the written kind as text.
fn kind(pending: &PendingWrite<'_>) -> String {
    match pending.gvk() {
        Some(gvk) => gvk.to_string(),
        None => {
            let path = pending
                .api_path()
                .trim_start_matches("/apis/")
                .trim_start_matches("/api/");
            format!("{path} {}", pending.plural())
        }
    }
}

fn content(object: &Arc<CachedObject>) -> Option<Value> {
    serde_json::from_slice(&object.json()?).ok()
}
