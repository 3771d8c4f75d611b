//! The conditions that one call sets, which decide what is reported at its end.

use std::collections::BTreeSet;
use std::sync::Arc;

use lariat_cache::View;
use parking_lot::Mutex;
use serde_json::Value;

use super::condition::ConditionUpdate;
use crate::reconcile::Reconcile;

/// The conditions that one call of a reconciler sets on its object.
#[derive(Default)]
pub(super) struct Decisions {
    /// The types of the conditions that the call sets.
    conditions: BTreeSet<String>,
    /// The value for the condition that reports errors, until the call has ended.
    pub(super) pending: Option<PendingCondition>,
}

/// A condition that is written once the call has succeeded.
pub(super) enum PendingCondition {
    Update(ConditionUpdate),
    /// Given as a part of a status that was written as a whole.
    Whole(Value),
}

impl Decisions {
    /// Returns the conditions that a call has set so far.
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
