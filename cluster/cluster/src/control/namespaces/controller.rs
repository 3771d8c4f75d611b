//! The controller of namespaces.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lariat_apimachinery::kinds::Resource;
use serde_json::Value;
use tokio::time::Instant;

use super::conditions;
use super::contents::{Contents, MANAGER};
use crate::control::controller::{ControlPlane, Controller};
use crate::control::queue::Queue;
use crate::control::write::{WriteOutcome, Writer};
use crate::store::{Change, EventType, Stored};
use crate::strategy::Part;

/// The finalizer in a namespace's spec under which it is emptied.
const FINALIZER: &str = "kubernetes";

/// The delay after a change until the conditions of a namespace are updated.
const REFRESH: Duration = Duration::from_secs(1);

/// Empties terminating namespaces, and finalizes those that are empty.
#[derive(Debug)]
pub(crate) struct Namespaces {
    /// The namespaces that are being deleted.
    terminating: HashMap<String, TerminatingNamespace>,
    /// Names to look at.
    ///
    /// Some may be of namespaces that are no longer in `terminating`.
    queue: Queue<String>,
}

/// The progress of the deletion of a namespace.
#[derive(Debug)]
struct TerminatingNamespace {
    /// Before this time it is not looked at.
    first_look: Instant,
    /// The number of objects at the last check that have not been deleted since.
    remaining: usize,
    /// It was looked at; before, nothing that happens brings the first look forward.
    is_begun: bool,
}

impl Namespaces {
    pub(crate) fn new() -> Self {
        Self {
            terminating: HashMap::new(),
            queue: Queue::new(),
        }
    }

    fn observe_namespace(&mut self, plane: &ControlPlane, change: &Change) {
        let event = &change.event;
        let name = event.object.key().name();
        if event.event == EventType::Deleted {
            self.terminating.remove(name);
        } else if event.object.is_deleting() {
            match self.terminating.get(name) {
                Some(known) if known.is_begun => self.queue.add(name.to_owned()),
                Some(_) => {}
                None => {
                    let first_look = Instant::now() + plane.server.time.namespace_deletion;
                    let terminating = TerminatingNamespace {
                        first_look,
                        remaining: 0,
                        is_begun: false,
                    };
                    self.terminating.insert(name.to_owned(), terminating);
                    self.queue.add_at(name.to_owned(), first_look);
                }
            }
        } else {
            // A restored snapshot takes the deletion back.
            self.terminating.remove(name);
        }
    }

    fn observe_content(&mut self, change: &Change) {
        let key = change.event.object.key();
        let Some(namespace) = key.namespace() else {
            return;
        };
        let terminating = self.terminating.get_mut(namespace);
        let Some(terminating) = terminating.filter(|terminating| terminating.is_begun) else {
            return;
        };
        if change.event.event == EventType::Deleted {
            terminating.remaining = terminating.remaining.saturating_sub(1);
        }
        // The last object to go decides the deletion; before, only the numbers in the conditions change.
        let delay = match terminating.remaining {
            0 => Duration::ZERO,
            _ => REFRESH,
        };
        self.queue
            .add_at(namespace.to_owned(), Instant::now() + delay);
    }

    /// Dequeues the next namespace that is due, and notes that its deletion has begun.
    fn begin_next(&mut self) -> Option<String> {
        while let Some(name) = self.queue.take_due() {
            match self.terminating.get_mut(&name) {
                Some(terminating) if terminating.first_look <= Instant::now() => {
                    terminating.is_begun = true;
                    return Some(name);
                }
                // It was queued for an earlier deletion, which was taken back.
                Some(terminating) => self.queue.add_at(name, terminating.first_look),
                None => {}
            }
        }
        None
    }
}

impl Controller for Namespaces {
    fn observe(&mut self, plane: &ControlPlane, change: &Change) {
        if change.table == plane.server.kinds.namespaces {
            self.observe_namespace(plane, change);
        } else if !self.terminating.is_empty() {
            self.observe_content(change);
        }
    }

    fn work(&mut self, plane: &ControlPlane) -> bool {
        let Some(name) = self.begin_next() else {
            return false;
        };
        let look = NamespaceDeletion { plane, name: &name };
        match (look.empty(), self.terminating.get_mut(&name)) {
            (Outcome::Remaining(remaining), Some(terminating)) => terminating.remaining = remaining,
            (Outcome::Remaining(_), None) => {}
            (Outcome::Again, _) => self.queue.add(name),
        }
        self.queue.has_due()
    }

    fn due(&self, _plane: &ControlPlane) -> Option<Instant> {
        self.queue.next_due()
    }

    fn is_paused(&self, plane: &ControlPlane) -> bool {
        !plane.server.switches.empties_namespaces()
    }
}

/// The result of a look at a namespace.
enum Outcome {
    /// So many objects are left, which something holds.
    Remaining(usize),
    /// There is more to do at once.
    Again,
}

/// The deletion of the contents of one namespace.
struct NamespaceDeletion<'a> {
    plane: &'a ControlPlane,
    name: &'a str,
}

impl NamespaceDeletion<'_> {
    /// Deletes the contents, updates the conditions, and finalizes an empty namespace.
    fn empty(&self) -> Outcome {
        let catalog = self.plane.server.kinds.catalog();
        let Some(namespaces) = catalog.resource("", "v1", "namespaces") else {
            return Outcome::Remaining(0);
        };
        let Some(current) = self.current(namespaces) else {
            return Outcome::Remaining(0);
        };
        if !has_finalizer(&current) {
            return Outcome::Remaining(0);
        }
        let contents = Contents::delete(self.plane, &catalog, self.name);
        // Large namespaces are emptied in portions, so that other controllers and clients get their turn in between.
        if contents.is_cut_short {
            return Outcome::Again;
        }
        match self.write_conditions(namespaces, &current, &contents) {
            WriteOutcome::Raced => return Outcome::Again,
            WriteOutcome::Done | WriteOutcome::Refused => {}
        }
        // Objects with finalizers are left. Their deletion brings the next look, so nothing polls.
        if contents.remaining() > 0 {
            return Outcome::Remaining(contents.remaining());
        }
        // No object can come after the contents were found empty: the store refuses creations in a terminating
        // namespace.
        match self.finalize(namespaces) {
            WriteOutcome::Raced => Outcome::Again,
            WriteOutcome::Done | WriteOutcome::Refused => Outcome::Remaining(0),
        }
    }

    fn current(&self, namespaces: &Resource) -> Option<Arc<Stored>> {
        let key = namespaces.key(None, self.name);
        let current = self.plane.server.store.get(namespaces.table, &key)?;
        current.is_deleting().then_some(current)
    }

    fn writer(&self) -> Writer<'_> {
        Writer {
            server: &self.plane.server,
            manager: MANAGER,
        }
    }

    fn write_conditions(
        &self,
        namespaces: &Resource,
        current: &Arc<Stored>,
        contents: &Contents,
    ) -> WriteOutcome {
        let now = self.plane.server.clock.now();
        self.writer()
            .update(namespaces, Part::Status, current, |object| {
                conditions::update(object, contents, &now);
            })
    }

    /// Removes the finalizer in the namespace's spec, which deletes the namespace.
    fn finalize(&self, namespaces: &Resource) -> WriteOutcome {
        let Some(current) = self.current(namespaces) else {
            return WriteOutcome::Done;
        };
        self.writer()
            .update(namespaces, Part::Finalize, &current, |object| {
                let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
                    return;
                };
                let Some(finalizers) = spec.get_mut("finalizers").and_then(Value::as_array_mut)
                else {
                    return;
                };
                finalizers.retain(|each| each != FINALIZER);
                if finalizers.is_empty() {
                    spec.remove("finalizers");
                }
            })
    }
}

/// Returns whether a namespace waits for this controller.
fn has_finalizer(namespace: &Stored) -> bool {
    let object = namespace.object();
    let spec = object.get("spec").and_then(|spec| spec.get("finalizers"));
    let finalizers = spec.and_then(Value::as_array);
    finalizers.is_some_and(|all| all.iter().any(|each| each == FINALIZER))
}
