//! An object that a workload controls.

use std::sync::Arc;

use lariat_apimachinery::kinds::Resource;
use serde_json::Value;

use super::conditions;
use crate::store::Stored;

#[derive(Debug)]
pub(super) struct Child {
    pub(super) resource: Arc<Resource>,
    pub(super) stored: Arc<Stored>,
    pub(super) object: Value,
}

impl Child {
    pub(super) fn new(resource: &Arc<Resource>, stored: Arc<Stored>) -> Option<Self> {
        Some(Self {
            object: Value::Object(stored.object()),
            resource: Arc::clone(resource),
            stored,
        })
    }

    pub(super) fn is_controlled_by(&self, uid: &str) -> bool {
        let references = self.at("/metadata/ownerReferences").as_array();
        references
            .into_iter()
            .flatten()
            .any(|each| each["uid"] == uid && each["controller"] == true)
    }

    pub(super) fn at(&self, pointer: &str) -> &Value {
        self.object.pointer(pointer).unwrap_or(&Value::Null)
    }

    pub(super) fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    pub(super) fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or(0)
    }

    pub(super) fn name(&self) -> &str {
        self.stored.key().name()
    }

    pub(super) fn is_going(&self) -> bool {
        self.stored.is_deleting()
    }

    /// Returns whether a Pod has succeeded or failed.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.text("/status/phase"), "Succeeded" | "Failed")
    }

    /// Returns whether a Pod has neither ended nor is being deleted.
    pub(super) fn is_active(&self) -> bool {
        !self.is_going() && !self.is_over()
    }

    /// Returns when a Pod became ready, if it is.
    pub(super) fn ready_since(&self) -> Option<&str> {
        let ready = conditions::find(self.at("/status/conditions"), "Ready")?;
        (ready["status"] == "True").then(|| ready["lastTransitionTime"].as_str())?
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready_since().is_some()
    }

    /// Returns a label, empty if there is none.
    pub(super) fn label(&self, name: &str) -> &str {
        self.at("/metadata/labels")
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Returns an annotation, empty if there is none.
    pub(super) fn annotation(&self, name: &str) -> &str {
        self.at("/metadata/annotations")
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}
