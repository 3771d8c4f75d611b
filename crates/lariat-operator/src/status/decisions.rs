//! What one call says in conditions.

use std::collections::BTreeSet;
use std::sync::Arc;

use lariat_cache::View;
use parking_lot::Mutex;
use serde_json::Value;

use super::condition::ConditionUpdate;
use crate::reconcile::Reconcile;

/// What one call of a reconciler decided about conditions of its object.
#[derive(Default)]
pub(super) struct Decisions {
    /// The types of the conditions it decided on.
    conditions: BTreeSet<String>,
    /// What it says in the condition in which errors are reported, until it is known how the call ends.
    pub(super) held: Option<Held>,
}

/// A condition that is written when the call has ended well.
pub(super) enum Held {
    Update(ConditionUpdate),
    /// As it stood in a status that was written.
    Whole(Value),
}

impl Decisions {
    /// Returns what a call has decided so far.
    pub(super) fn of<K: View>(cx: &Reconcile<K>) -> Arc<Mutex<Self>> {
        cx.call().feature()
    }

    /// Notes that the call decided on a condition of a type.
    pub(super) fn decide(&mut self, kind: impl Into<String>) {
        self.conditions.insert(kind.into());
    }

    /// Returns whether the call decided on a condition of a type.
    pub(super) fn has(&self, kind: &str) -> bool {
        self.conditions.contains(kind)
    }
}
