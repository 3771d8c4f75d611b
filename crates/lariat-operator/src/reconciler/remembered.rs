//! The sizes of what reconcilers remember.

use std::sync::{Arc, Weak};

use lariat_core::Remembered;
use parking_lot::Mutex;

use super::sets;
use crate::reconcile::OperatorState;
use crate::status::Applied;

/// A registered reconciler that remembers something.
pub(crate) trait Remembers: Send + Sync {
    /// Appends the sizes of what it remembers.
    fn remembered(&self, all: &mut Vec<Remembered>);
}

/// The registered reconcilers of an operator.
#[derive(Default)]
pub(crate) struct Reconcilers(Mutex<Vec<(u64, Weak<dyn Remembers>)>>);

impl Reconcilers {
    /// Adds a reconciler under its number.
    pub(crate) fn add(&self, number: u64, reconciler: Weak<dyn Remembers>) {
        self.0.lock().push((number, reconciler));
    }

    /// Removes a reconciler, even if a call still holds it.
    pub(crate) fn remove(&self, number: u64) {
        self.0.lock().retain(|(of, _)| *of != number);
    }

    fn list(&self) -> Vec<Arc<dyn Remembers>> {
        let all = self.0.lock();
        all.iter().filter_map(|(_, each)| each.upgrade()).collect()
    }
}

/// Appends the sizes of what the reconcilers of an operator remember.
pub(crate) fn remembered(operator: &OperatorState, all: &mut Vec<Remembered>) {
    sets::remembered(operator, all);
    all.push(operator.feature::<Applied>().remembered());
    // Without the lock of the list.
    for reconciler in operator.feature::<Reconcilers>().list() {
        reconciler.remembered(all);
    }
}
