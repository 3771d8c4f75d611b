//! Calls of handlers: one worker per key, and the last call saw the last state.

use std::collections::BTreeMap;
use std::sync::Arc;

use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{Event, HandlerId, IncarnationId, Moment, Rest};

use super::wanted::wanted;
use super::{Check, Findings};
use crate::oracle::Oracle;

// Without the handler: a worker calls the handlers of a key one after another, so calls of two handlers must not
// overlap either.
type KeyOf = (IncarnationId, Gvk, ObjectKey);

/// A key of a kind is with one worker at a time.
#[derive(Default)]
pub(super) struct OneWorker {
    running: BTreeMap<KeyOf, Arc<str>>,
}

impl Check for OneWorker {
    fn name(&self) -> &'static str {
        "one worker per key"
    }

    fn saw(&mut self, _: &Oracle, _: &Moment, event: &Event) -> Findings {
        match event {
            Event::Began { handler, key, .. } => {
                let name = Arc::clone(&handler.name);
                let other = self.running.insert(of(handler, key), name).map(|other| {
                    let kind = handler.kind.kind();
                    format!(
                        "{} is called for {kind} {key} while {other} runs for it",
                        handler.name
                    )
                });
                other.into_iter().collect()
            }
            Event::Ended { handler, key, .. } => {
                self.running.remove(&of(handler, key));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

fn of(handler: &HandlerId, key: &ObjectKey) -> KeyOf {
    (
        handler.incarnation.clone(),
        handler.kind.clone(),
        key.clone(),
    )
}

/// Every handler was called with the last state of each object, or its deletion.
#[derive(Default)]
pub(super) struct LastCall {
    shown: BTreeMap<HandlerId, BTreeMap<ObjectKey, Option<(String, u64)>>>,
}

impl Check for LastCall {
    fn name(&self) -> &'static str {
        "the last call saw the last state"
    }

    fn saw(&mut self, _: &Oracle, _: &Moment, event: &Event) -> Findings {
        match event {
            Event::Began {
                handler,
                key,
                object,
                ..
            } => {
                let shown = object
                    .as_ref()
                    .map(|shown| (shown.uid.clone(), shown.version));
                let of_handler = self.shown.entry(handler.clone()).or_default();
                of_handler.insert(key.clone(), shown);
            }
            Event::IncarnationEnded(incarnation) => {
                self.shown.retain(|of, _| of.incarnation != *incarnation)
            }
            Event::Acted(activity) => {
                if let Some(handler) = activity.deregistered() {
                    self.shown.remove(&handler);
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn at_rest(&mut self, oracle: &Oracle, rest: &Rest<'_>) -> Findings {
        let mut found = Vec::new();
        for controller in rest.controllers {
            let kind = &controller.cache.gvk;
            let selection = wanted(rest, kind);
            for handler in &controller.handlers {
                let id = rest.handler(kind, &handler.name);
                let shown = self.shown.get(&id);
                for (key, object) in oracle.all(kind) {
                    if !selection.selects(key, object) {
                        continue;
                    }
                    let last = shown.and_then(|shown| shown.get(key));
                    // The uid as well: after a restored backup an object of the same version may be another one.
                    let is = (object.uid().to_owned(), object.revision());
                    match last {
                        Some(Some(last)) if *last == is => {}
                        Some(Some((_, version))) => found.push(format!(
                            "{}: the last call for {} {key} saw version {version}, the server has {}",
                            handler.name, kind.kind(), is.1
                        )),
                        Some(None) => found.push(format!(
                            "{}: the last call for {} {key} saw no object, the server has version {}",
                            handler.name, kind.kind(), is.1
                        )),
                        None => found.push(format!(
                            "{}: no call for {} {key} at all, the server has version {}",
                            handler.name, kind.kind(), is.1
                        )),
                    }
                }
                // The other direction: what is gone, or not selected any more, must have been shown as gone.
                for (key, last) in shown.into_iter().flatten() {
                    let is_there = oracle
                        .now(kind, key)
                        .is_some_and(|now| selection.selects(key, now));
                    if let (Some((_, version)), false) = (last, is_there) {
                        found.push(format!(
                            "{}: the last call for {} {key} saw version {version}, the server has no such object",
                            handler.name, kind.kind()
                        ));
                    }
                }
            }
        }
        found
    }
}
