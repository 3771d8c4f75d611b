//! The sizes of the internal structures of reconcilers.

use std::sync::{Arc, Weak};

use lariat_core::TableSize;
use parking_lot::Mutex;

use super::sets;
use crate::reconcile::OperatorState;
use crate::status::Applied;

/// A registered reconciler that has internal structures.
pub(crate) trait Remembers: Send + Sync {
    /// Appends the sizes of its structures.
    fn table_sizes(&self, all: &mut Vec<TableSize>);
}

/// The registered reconcilers of an operator.
#[derive(Default)]
pub(crate) struct Reconcilers(Mutex<Vec<(u64, Weak<dyn Remembers>)>>);

impl Reconcilers {
    /// Adds a reconciler under its number.
    pub(crate) fn add(&self, number: u64, reconciler: Weak<dyn Remembers>) {
        self.0.lock().push((number, reconciler));
    }

    /// Removes a reconciler, even if a running call still holds it.
    pub(crate) fn remove(&self, number: u64) {
        self.0.lock().retain(|(of, _)| *of != number);
    }

    fn list(&self) -> Vec<Arc<dyn Remembers>> {
        let all = self.0.lock();
        all.iter().filter_map(|(_, each)| each.upgrade()).collect()
    }
}

/// Appends the sizes of the structures of an operator's reconcilers.
pub(crate) fn table_sizes(operator: &OperatorState, all: &mut Vec<TableSize>) {
    sets::table_sizes(operator, all);
    all.push(operator.feature::<Applied>().table_sizes());
    // The list is a copy, so that its lock is not held while others are taken.
    for reconciler in operator.feature::<Reconcilers>().list() {
        reconciler.table_sizes(all);
    }
}
