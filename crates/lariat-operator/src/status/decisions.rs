//! The conditions that one call sets.

use std::collections::BTreeSet;
use std::sync::Arc;

use lariat_cache::View;
use parking_lot::Mutex;
use serde_json::Value;

use super::condition::ConditionUpdate;
use crate::reconcile::Reconcile;

/// The conditions of its object that one call of a reconciler sets.
#[derive(Default)]
pub(super) struct Decisions {
    /// The types of the conditions it sets.
    conditions: BTreeSet<String>,
    /// The value it sets in the condition that reports errors, until the call has ended.
    pub(super) held: Option<Held>,
}

/// A condition that is written once the call has succeeded.
pub(super) enum Held {
    Update(ConditionUpdate),
    /// As part of a status that was written whole.
    Whole(Value),
}

impl Decisions {
    /// Returns the decisions of a call.
    pub(super) fn of<K: View>(cx: &Reconcile<K>) -> Arc<Mutex<Self>> {
        cx.call().feature()
    }

    /// Records that the call sets the condition of a type.
    pub(super) fn decide(&mut self, kind: impl Into<String>) {
        self.conditions.insert(kind.into());
    }

    /// Returns whether the call sets the condition of a type.
    pub(super) fn has(&self, kind: &str) -> bool {
        self.conditions.contains(kind)
    }
}
