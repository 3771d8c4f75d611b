//! What is remembered of sets, as long as there are reconcilers and owners.

use lariat_core::{Gvk, ObjectKey, Remembered};

use crate::apply::Memory;
use crate::reconcile::OperatorState;

/// Notes that there is a reconciler of a kind, or one more.
pub(super) fn begin(operator: &OperatorState, gvk: &Gvk) {
    operator.feature::<Memory>().begin(gvk);
}

/// Notes that a reconciler of a kind has ended.
pub(super) fn end(operator: &OperatorState, gvk: &Gvk) {
    operator.feature::<Memory>().end(gvk);
}

/// Forgets an owner.
pub(super) fn forget(operator: &OperatorState, gvk: &Gvk, key: &ObjectKey) {
    operator.feature::<Memory>().forget(gvk, key);
}

/// Adds how much is remembered.
pub(super) fn remembered(operator: &OperatorState, all: &mut Vec<Remembered>) {
    operator.feature::<Memory>().remembered(all);
}
