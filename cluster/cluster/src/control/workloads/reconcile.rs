//! The reconcile of one object.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use lariat_apimachinery::kinds::{Catalog, Resource};
use lariat_core::{LabelSelector, ObjectKey};
use serde_json::Value;
use tokio::time::Instant;

use super::child::Child;
use super::events;
use super::kind::Kind;
use super::refusal::Refusal;
use crate::control::controller::ControlPlane;
use crate::control::write::{WriteOutcome, Writer};
use crate::store::{Range, Stored};
use crate::strategy::Part;
use crate::verbs::{Deletion, Propagation};
use crate::workloads::Workloads;

/// The reason of events about objects that are refused.
pub(super) const FAILED_CREATE: &str = "FailedCreate";

/// The time at which an object is reconciled again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requeue {
    /// At a change of it or of something that concerns it.
    OnChange,
    /// In the next turn: another write came in between.
    Now,
    /// At some time, unless a change comes first.
    At(Instant),
}

impl Requeue {
    /// Combines two: the earlier counts.
    pub(super) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Now, _) | (_, Self::Now) => Self::Now,
            (Self::At(a), Self::At(b)) => Self::At(a.min(b)),
            (Self::OnChange, other) => other,
            (this, _) => this,
        }
    }
}

impl From<WriteOutcome> for Requeue {
    fn from(written: WriteOutcome) -> Self {
        match written {
            WriteOutcome::Raced => Self::Now,
            WriteOutcome::Done | WriteOutcome::Refused => Self::OnChange,
        }
    }
}

/// An object to reconcile, with the state that writes about it need.
pub(super) struct Reconcile<'a> {
    pub(super) plane: &'a ControlPlane,
    pub(super) settings: &'a Workloads,
    pub(super) kind: Kind,
    pub(super) resource: Arc<Resource>,
    pub(super) stored: Arc<Stored>,
    pub(super) object: Value,
    catalog: Arc<Catalog>,
    /// Whether something was refused, after which the object is reconciled again with growing delay.
    has_failed: Cell<bool>,
}

impl<'a> Reconcile<'a> {
    /// Reads an object; `None` if it is gone.
    pub(super) fn new(
        plane: &'a ControlPlane,
        settings: &'a Workloads,
        kind: Kind,
        key: &ObjectKey,
    ) -> Option<Self> {
        let catalog = plane.server.kinds.catalog();
        let resource = Arc::clone(kind.resource(&catalog)?);
        let stored = plane.server.store.get(resource.table, key)?;
        Some(Self {
            object: Value::Object(stored.object()),
            plane,
            settings,
            kind,
            resource,
            stored,
            catalog,
            has_failed: Cell::new(false),
        })
    }

    /// Returns the value at a pointer, null if there is none.
    pub(super) fn at(&self, pointer: &str) -> &Value {
        self.object.pointer(pointer).unwrap_or(&Value::Null)
    }

    pub(super) fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    pub(super) fn number(&self, pointer: &str) -> Option<i64> {
        self.at(pointer).as_i64()
    }

    /// Returns the number of replicas in the spec, one if there is none.
    pub(super) fn replicas(&self) -> i64 {
        let replicas = self.number("/spec/replicas").unwrap_or(1);
        replicas.clamp(0, i64::from(i32::MAX))
    }

    pub(super) fn name(&self) -> &str {
        self.stored.key().name()
    }

    /// Returns the generation of the spec, which a status observes.
    pub(super) fn generation(&self) -> i64 {
        self.number("/metadata/generation").unwrap_or(0)
    }

    pub(super) fn now(&self) -> String {
        self.plane.server.clock.now()
    }

    /// Returns when some time after a Kubernetes time has passed, or `None` if it has.
    pub(super) fn until(&self, time: &str, after: Duration) -> Option<Instant> {
        let then: jiff::Timestamp = time.parse().ok()?;
        let end = then.checked_add(after).unwrap_or(jiff::Timestamp::MAX);
        let signed = end.duration_since(self.plane.server.clock.timestamp());
        // A negative time does not fit into a Duration, so `None` says that the end has passed.
        let left = Duration::try_from(signed).ok()?;
        (!left.is_zero()).then(|| Instant::now() + left)
    }

    pub(super) fn writer(&self) -> Writer<'_> {
        Writer {
            server: &self.plane.server,
            manager: self.kind.manager(),
        }
    }

    /// Returns the objects of a kind that this one controls, by key.
    pub(super) fn children(&self, kind: Kind) -> Vec<Child> {
        let Some(resource) = kind.resource(&self.catalog) else {
            return Vec::new();
        };
        let uid = self.stored.uid();
        let dependents = self.plane.graph.dependents(uid);
        let nodes = dependents.filter(|node| node.table == resource.table);
        let children = nodes.filter_map(|node| {
            let stored = self.plane.server.store.get(node.table, &node.key)?;
            Child::new(resource, stored)
        });
        children
            // The graph has every owner, of which at most one is the controller.
            .filter(|child| child.is_controlled_by(uid))
            .collect()
    }

    /// Returns the Pods of this object's namespace that a selector admits, by name.
    pub(super) fn selected(&self, selector: &LabelSelector) -> Vec<Child> {
        let Some(resource) = Kind::Pod.resource(&self.catalog) else {
            return Vec::new();
        };
        let range = Range {
            namespace: self.stored.key().namespace(),
            ..Range::default()
        };
        let page = self.plane.server.store.range(resource.table, &range);
        let pods = page.map(|page| page.objects).unwrap_or_default();
        pods.into_iter()
            .filter(|stored| selector.matches(stored.labels()))
            .filter_map(|stored| Child::new(resource, stored))
            .collect()
    }

    /// Returns an object by kind and name, in this namespace if it is namespaced.
    pub(super) fn find(&self, kind: Kind, name: &str) -> Option<Child> {
        let resource = kind.resource(&self.catalog)?;
        let key = resource.key(self.stored.key().namespace(), name);
        let stored = self.plane.server.store.get(resource.table, &key)?;
        Child::new(resource, stored)
    }

    /// Changes another object, its status aside.
    pub(super) fn edit(&self, child: &Child, edit: impl FnOnce(&mut Value)) -> WriteOutcome {
        self.edit_part(child, Part::Main, edit)
    }

    /// Changes the status of another object.
    pub(super) fn edit_status(&self, child: &Child, edit: impl FnOnce(&mut Value)) -> WriteOutcome {
        self.edit_part(child, Part::Status, edit)
    }

    fn edit_part(&self, child: &Child, part: Part, edit: impl FnOnce(&mut Value)) -> WriteOutcome {
        let writer = self.writer();
        writer.update(&child.resource, part, &child.stored, |object| {
            let mut value = Value::Object(std::mem::take(object));
            edit(&mut value);
            if let Value::Object(edited) = value {
                *object = edited;
            }
        })
    }

    /// Returns the reference by which this object controls others.
    pub(super) fn controller_reference(&self) -> Value {
        serde_json::json!({
            "apiVersion": self.resource.api_version(), "kind": self.resource.kind,
            "name": self.name(), "uid": self.stored.uid(),
            "controller": true, "blockOwnerDeletion": true,
        })
    }

    /// Creates an object in this namespace; returns whether it was admitted.
    pub(super) fn create(&self, kind: Kind, object: &Value) -> bool {
        self.try_create(kind, object).is_ok()
    }

    /// Creates an object in this namespace.
    ///
    /// If it is refused, this object is [reconciled again](Self::has_failed) later.
    pub(super) fn try_create(&self, kind: Kind, object: &Value) -> Result<(), Refusal> {
        let Some(resource) = kind.resource(&self.catalog) else {
            return Err(Refusal {
                message: format!("the server does not serve {kind:?}"),
                is_taken: false,
                is_end: true,
            });
        };
        let namespace = self.stored.key().namespace();
        let created = self.writer().create(resource, namespace, object);
        created.map_err(|error| {
            let (kind, owner) = (&resource.kind, self.stored.key().as_str());
            tracing::debug!(kind, owner, error = error.message(), "cannot create");
            let refusal = Refusal::from(error);
            // A CronJob leaves a Job that has its name alone, as `syncCronJob` does.
            let is_left = refusal.is_taken && self.kind == Kind::CronJob;
            if !refusal.is_end && !is_left {
                self.has_failed.set(true);
            }
            refusal
        })
    }

    /// Creates a Pod; records an event if it is refused.
    // `RealPodControl.createPods`.
    pub(super) fn create_pod(&self, pod: &Value) -> Result<(), Refusal> {
        let created = self.try_create(Kind::Pod, pod);
        if let Err(refusal) = &created
            && !refusal.is_end
        {
            let message = format!("Error creating: {}", refusal.message);
            events::warn(self, FAILED_CREATE, &message);
        }
        created
    }

    /// Returns whether something was refused.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.get()
    }

    pub(super) fn delete(&self, child: &Child, grace: Option<u64>) -> WriteOutcome {
        let deletion = Deletion {
            grace,
            // As DeletePod of RealPodControl, whose delete options leave it to the default, which for Pods is this.
            propagation: Some(Propagation::Background),
        };
        self.writer()
            .delete(&child.resource, &child.stored, deletion)
    }

    /// Deletes this object, and the objects it owns before it.
    pub(super) fn delete_self(&self) -> WriteOutcome {
        let deletion = Deletion {
            grace: None,
            // As processJob in Go's controller ttlafterfinished.
            propagation: Some(Propagation::Foreground),
        };
        self.writer().delete(&self.resource, &self.stored, deletion)
    }

    /// Sets the number of replicas in the spec of a child.
    pub(super) fn scale(&self, child: &Child, replicas: i64) -> WriteOutcome {
        self.writer()
            .update(&child.resource, Part::Main, &child.stored, |object| {
                if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
                    spec.insert("replicas".into(), replicas.into());
                }
            })
    }

    /// Replaces the status of this object.
    pub(super) fn write_status(&self, status: Value) -> WriteOutcome {
        let part = Part::Status;
        self.writer()
            .update(&self.resource, part, &self.stored, |object| {
                object.insert("status".into(), status);
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn of_two_requeues_the_earlier_counts() {
        let now = Instant::now();
        let [soon, late] = [1, 2].map(|seconds| Requeue::At(now + Duration::from_secs(seconds)));
        let order = [Requeue::Now, soon, late, Requeue::OnChange];
        for (place, first) in order.iter().enumerate() {
            for second in &order[place..] {
                assert_eq!(first.or(*second), *first, "{first:?} {second:?}");
                assert_eq!(second.or(*first), *first, "{second:?} {first:?}");
            }
        }
    }
}
