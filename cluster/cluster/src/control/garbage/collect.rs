//! Processes an object: whether it is garbage, and whether it can be removed.

use std::collections::HashSet;
use std::sync::Arc;

use lariat_apimachinery::kinds::{Catalog, Resource};
use lariat_apimachinery::object::{Object, metadata_mut};
use serde_json::Value;

use super::invalid;
use super::outcome::{MANAGER, Outcome};
use super::owner::{self, Owner};
use crate::control::controller::ControlPlane;
use crate::control::graph::Node;
use crate::control::metadata::{Metadata, OwnerReference};
use crate::control::write::{WriteOutcome, Writer};
use crate::store::Stored;
use crate::strategy::{FOREGROUND, ORPHAN, Part};
use crate::verbs::{Deletion, Propagation};

/// The state that the collection of one object needs.
pub(super) struct Collection<'a> {
    pub(super) plane: &'a ControlPlane,
    pub(super) catalog: &'a Catalog,
}

/// The owner references of an object, classified by the state of the owners.
#[derive(Debug, Default)]
struct Classes<'a> {
    solid: Vec<&'a OwnerReference>,
    waiting: Vec<&'a OwnerReference>,
    dangling: Vec<&'a OwnerReference>,
}

impl Collection<'_> {
    pub(super) fn at(&self, node: &Node) -> Outcome {
        let Some(resource) = self.resource(node) else {
            return Outcome::Done;
        };
        let Some(current) = self.current(node) else {
            return Outcome::Done;
        };
        let metadata = Metadata::of(&current);
        if current.is_deleting() {
            // Orphaning comes first: with both finalizers, dependents must lose their reference before foreground
            // deletion could collect them.
            return if metadata.is_orphan() {
                self.release_dependents(resource, node, &current)
            } else if metadata.is_foreground() && !self.plane.graph.is_blocked(&node.uid) {
                outcome(self.drop_finalizer(resource, &current, FOREGROUND))
            } else {
                Outcome::Done
            };
        }
        match self.classify(node, &metadata) {
            Ok(classes) => self.collect(resource, &current, &metadata, &classes),
            Err(outcome) => outcome,
        }
    }

    fn resource(&self, node: &Node) -> Option<&Arc<Resource>> {
        self.catalog.of_table(node.table)
    }

    fn current(&self, node: &Node) -> Option<Arc<Stored>> {
        let current = self.plane.server.store.get(node.table, &node.key)?;
        // An object that was deleted and created again has the key, but is another object; it is queued under its own
        // uid.
        (current.uid() == &*node.uid).then_some(current)
    }

    fn writer(&self) -> Writer<'_> {
        Writer {
            server: &self.plane.server,
            manager: MANAGER,
        }
    }

    fn classify<'a>(&self, node: &Node, metadata: &'a Metadata) -> Result<Classes<'a>, Outcome> {
        let mut classes = Classes::default();
        for reference in &metadata.owner_references {
            match owner::find(self.plane, self.catalog, node, reference) {
                Owner::Solid => classes.solid.push(reference),
                Owner::Waiting => classes.waiting.push(reference),
                // The kind may be served again, when its CRD returns, and its objects with it. An object is never
                // deleted on a guess.
                Owner::Unknown => return Err(Outcome::Unresolved),
                Owner::Unreachable => {
                    invalid::report(self.plane, self.catalog, node, reference);
                    return Err(Outcome::Done);
                }
                Owner::Absent => {
                    if invalid::is_elsewhere(self.plane, node, reference) {
                        invalid::report(self.plane, self.catalog, node, reference);
                    }
                    classes.dangling.push(reference);
                }
            }
        }
        Ok(classes)
    }

    fn collect(
        &self,
        resource: &Resource,
        current: &Arc<Stored>,
        metadata: &Metadata,
        classes: &Classes<'_>,
    ) -> Outcome {
        // The cases are those of attemptToDeleteItem in Go's garbage collector.
        if metadata.owner_references.is_empty() {
            return Outcome::Done;
        }
        // One living owner keeps the object. References to the others go, since they would block or mislead later
        // decisions.
        if !classes.solid.is_empty() {
            let gone = classes.dangling.iter().chain(&classes.waiting);
            let uids: Vec<&str> = gone.map(|reference| &*reference.uid).collect();
            return if uids.is_empty() {
                Outcome::Done
            } else {
                outcome(self.drop_references(resource, current, &uids))
            };
        }
        // No owner lives. If one waits for its dependents, this object must wait for its own dependents as well, so
        // that the foreground deletion goes through the whole tree from the leaves up.
        let has_dependents = self.plane.graph.dependents(current.uid()).next().is_some();
        let propagation = if !classes.waiting.is_empty() && has_dependents {
            if self.is_in_circle(current) && self.unblock(resource, current) == WriteOutcome::Raced
            {
                return Outcome::Again;
            }
            Propagation::Foreground
        } else if metadata.is_orphan() {
            // No owner waits for it, so its own finalizers say how it is deleted; without them it goes in the
            // background.
            Propagation::Orphan
        } else if metadata.is_foreground() {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        self.delete(resource, current, propagation)
    }

    fn delete(
        &self,
        resource: &Resource,
        current: &Arc<Stored>,
        propagation: Propagation,
    ) -> Outcome {
        // The references of the circle may just have been changed, so the object is read again.
        let Some(latest) = self.plane.server.store.get(resource.table, current.key()) else {
            return Outcome::Done;
        };
        if latest.uid() != current.uid() {
            return Outcome::Done;
        }
        let deletion = Deletion {
            propagation: Some(propagation),
            ..Deletion::default()
        };
        outcome(self.writer().delete(resource, &latest, deletion))
    }

    /// Returns whether a dependent waits for its own dependents, as its owner does.
    ///
    /// Then each may wait for the other.
    fn is_in_circle(&self, current: &Stored) -> bool {
        self.plane.graph.dependents(current.uid()).any(|node| {
            let dependent = self.current(node);
            dependent.is_some_and(|each| each.is_deleting() && Metadata::of(&each).is_foreground())
        })
    }

    /// Unblocks the owners of an object, so that they go before it.
    fn unblock(&self, resource: &Resource, current: &Arc<Stored>) -> WriteOutcome {
        self.writer()
            .update(resource, Part::Main, current, |object| {
                for reference in references_mut(object) {
                    reference["blockOwnerDeletion"] = false.into();
                }
            })
    }

    fn drop_references(
        &self,
        resource: &Resource,
        current: &Arc<Stored>,
        uids: &[&str],
    ) -> WriteOutcome {
        let uids: HashSet<&str> = uids.iter().copied().collect();
        self.writer()
            .update(resource, Part::Main, current, |object| {
                let references = references_mut(object);
                references.retain(|reference| {
                    let uid = reference["uid"].as_str().unwrap_or_default();
                    !uids.contains(uid)
                });
                if references.is_empty() {
                    metadata_mut(object).remove("ownerReferences");
                }
            })
    }

    /// Removes the reference to an object from all its dependents, and then its finalizer.
    fn release_dependents(
        &self,
        resource: &Resource,
        owner: &Node,
        current: &Arc<Stored>,
    ) -> Outcome {
        for node in self.plane.graph.dependents(&owner.uid) {
            // The finalizer of the owner may be dropped only when no dependent refers to it; a race with a client that
            // writes the dependent is therefore repeated here, not at the next look.
            while let (Some(resource), Some(dependent)) = (self.resource(node), self.current(node))
            {
                let written = self.drop_references(resource, &dependent, &[&owner.uid]);
                if written != WriteOutcome::Raced {
                    break;
                }
            }
        }
        outcome(self.drop_finalizer(resource, current, ORPHAN))
    }

    fn drop_finalizer(
        &self,
        resource: &Resource,
        current: &Arc<Stored>,
        finalizer: &str,
    ) -> WriteOutcome {
        self.writer()
            .update(resource, Part::Main, current, |object| {
                let finalizers = metadata_mut(object).get_mut("finalizers");
                if let Some(finalizers) = finalizers.and_then(Value::as_array_mut) {
                    finalizers.retain(|each| each != finalizer);
                }
            })
    }
}

/// Returns the owner references of an object, which it has.
fn references_mut(object: &mut Object) -> &mut Vec<Value> {
    let references = metadata_mut(object)
        .entry("ownerReferences")
        .or_insert_with(|| Value::Array(Vec::new()));
    if !references.is_array() {
        *references = Value::Array(Vec::new());
    }
    references
        .as_array_mut()
        .expect("it was just made an array")
}

/// Returns the outcome of a write: only a race leads to another try, since a refused write would be refused again.
fn outcome(written: WriteOutcome) -> Outcome {
    match written {
        WriteOutcome::Done | WriteOutcome::Refused => Outcome::Done,
        WriteOutcome::Raced => Outcome::Again,
    }
}
