//! Counts reconcilers and owners for the memory of applied sets.

use lariat_core::{Gvk, ObjectKey, TableSize};

use crate::apply::Memory;
use crate::reconcile::OperatorState;

/// Counts a new reconciler of a kind.
pub(super) fn begin(operator: &OperatorState, gvk: &Gvk) {
    operator.feature::<Memory>().begin(gvk);
}

/// Counts a reconciler of a kind that has ended.
pub(super) fn end(operator: &OperatorState, gvk: &Gvk) {
    operator.feature::<Memory>().end(gvk);
}

/// Forgets an owner.
pub(super) fn forget(operator: &OperatorState, gvk: &Gvk, key: &ObjectKey) {
    operator.feature::<Memory>().forget(gvk, key);
}

/// Appends the sizes of the memory.
pub(super) fn table_sizes(operator: &OperatorState, all: &mut Vec<TableSize>) {
    operator.feature::<Memory>().table_sizes(all);
}
