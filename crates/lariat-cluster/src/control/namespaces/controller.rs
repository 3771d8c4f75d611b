//! The controller of namespaces.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lariat_apimachinery::kinds::Resource;
use serde_json::Value;
use tokio::time::Instant;

use super::conditions;
use super::contents::{Contents, MANAGER};
use crate::control::plane::{Controller, Plane};
use crate::control::write::{Writer, Written};
use crate::store::{Change, EventType, Stored};
use crate::strategy::Part;

/// The finalizer in a namespace's spec under which it is emptied.
const FINALIZER: &str = "kubernetes";

/// How long after a change in a namespace that is not empty yet its conditions are brought up to date.
const REFRESH: Duration = Duration::from_secs(1);

/// Empties terminating namespaces, and lets go of those that are empty.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    /// The namespaces that are being deleted.
    terminating: HashMap<String, Emptying>,
}

/// Where a namespace is on its way out.
#[derive(Debug, Default)]
struct Emptying {
    /// When it is looked at next, if there is a reason to.
    due: Option<Instant>,
    /// How many objects it had at the last look and have not gone since.
    remaining: usize,
    /// It was looked at; before, nothing that happens brings the first look forward.
    is_begun: bool,
}

impl Emptying {
    fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Looks at it at some time, or earlier.
    fn look_by(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

impl Namespaces {
    fn observe_namespace(&mut self, plane: &Plane, change: &Change) {
        let event = &change.event;
        let name = event.object.key().name();
        if event.event == EventType::Deleted {
            self.terminating.remove(name);
        } else if event.object.is_deleting() {
            let now = Instant::now();
            match self.terminating.get_mut(name) {
                Some(known) if known.is_begun => known.look_by(now),
                Some(_) => {}
                None => {
                    let first = Emptying {
                        due: Some(now + plane.server.time.namespace_deletion),
                        ..Emptying::default()
                    };
                    self.terminating.insert(name.to_owned(), first);
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
        let known = self.terminating.get_mut(namespace);
        let Some(emptying) = known.filter(|emptying| emptying.is_begun) else {
            return;
        };
        if change.event.event == EventType::Deleted {
            emptying.remaining = emptying.remaining.saturating_sub(1);
        }
        // The last object to go is what everybody waits for; before, only the numbers change.
        let now = Instant::now();
        emptying.look_by(match emptying.remaining {
            0 => now,
            _ => now + REFRESH,
        });
    }
}

impl Controller for Namespaces {
    fn observe(&mut self, plane: &Plane, change: &Change) {
        if change.table == plane.server.kinds.namespaces {
            self.observe_namespace(plane, change);
        } else if !self.terminating.is_empty() {
            self.observe_content(change);
        }
    }

    fn work(&mut self, plane: &Plane) -> bool {
        let now = Instant::now();
        let due = self.terminating.iter_mut();
        let due = due.filter(|(_, emptying)| emptying.is_due(now));
        let Some((name, emptying)) = due.min_by(|a, b| a.0.cmp(b.0)) else {
            return false;
        };
        emptying.due = None;
        emptying.is_begun = true;
        let look = Look { plane, name };
        match look.empty() {
            Outcome::Remaining(remaining) => emptying.remaining = remaining,
            Outcome::Again => emptying.due = Some(now),
        }
        self.terminating.values().any(|each| each.is_due(now))
    }

    fn due(&self, _plane: &Plane) -> Option<Instant> {
        self.terminating.values().filter_map(|each| each.due).min()
    }

    fn is_paused(&self, plane: &Plane) -> bool {
        !plane.server.switches.empties_namespaces()
    }
}

/// What came of the look at a namespace.
enum Outcome {
    /// So many objects are left, which something holds.
    Remaining(usize),
    /// There is more to do at once.
    Again,
}

/// The look at one namespace.
struct Look<'a> {
    plane: &'a Plane,
    name: &'a str,
}

impl Look<'_> {
    /// Deletes what is in the namespace, says in its conditions what is left, and lets it go if nothing
    /// is.
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
        if contents.is_cut_short {
            return Outcome::Again;
        }
        match self.write_conditions(namespaces, &current, &contents) {
            Written::Raced => return Outcome::Again,
            Written::Done | Written::Refused => {}
        }
        if contents.remaining() > 0 {
            return Outcome::Remaining(contents.remaining());
        }
        match self.finalize(namespaces) {
            Written::Raced => Outcome::Again,
            Written::Done | Written::Refused => Outcome::Remaining(0),
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
    ) -> Written {
        let now = self.plane.server.clock.now();
        self.writer()
            .update(namespaces, Part::Status, current, |object| {
                conditions::update(object, contents, &now);
            })
    }

    /// Takes away the finalizer in the namespace's spec, with which the namespace goes.
    fn finalize(&self, namespaces: &Resource) -> Written {
        let Some(current) = self.current(namespaces) else {
            return Written::Done;
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
