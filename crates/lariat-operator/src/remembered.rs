//! How much an operator remembers.

use std::sync::{Arc, Weak};

use lariat_core::Remembered;
use parking_lot::Mutex;

use crate::operator::Operator;

/// A registered reconciler, which remembers something by itself.
pub(crate) trait Remembers: Send + Sync {
    /// Adds how much it remembers.
    fn remembered(&self, all: &mut Vec<Remembered>);
}

/// The reconcilers of an operator, until they are taken away.
#[derive(Default)]
pub(crate) struct Reconcilers(Mutex<Vec<(u64, Weak<dyn Remembers>)>>);

impl Reconcilers {
    /// Adds a reconciler under its number.
    pub(crate) fn add(&self, number: u64, reconciler: Weak<dyn Remembers>) {
        self.0.lock().push((number, reconciler));
    }

    /// Removes a reconciler, although a call may still have it.
    pub(crate) fn remove(&self, number: u64) {
        self.0.lock().retain(|(of, _)| *of != number);
    }

    fn list(&self) -> Vec<Arc<dyn Remembers>> {
        let all = self.0.lock();
        all.iter().filter_map(|(_, each)| each.upgrade()).collect()
    }
}

impl Operator {
    /// Returns how much the operator remembers, with the bound of each structure.
    ///
    /// It is for checks, and for gauges of programs that run for long. What its factory remembers is not in it; see
    /// [`SharedControllerFactory::remembered`](lariat_controller::SharedControllerFactory::remembered).
    ///
    /// Locks are held for moments, and the cost does not grow with the number of objects.
    ///
    /// | `what` | keyed by | bound |
    /// |---|---|---|
    /// | `owners of sets` | object key | for each kind 64, or twice the owners that exist; they go with the last reconciler of the kind |
    /// | `applied kinds`, `forbidden kinds` | kind | 1,024 |
    /// | `applied statuses` | uid | 65,536 |
    /// | `cleaned objects` | uid | 16,384 for each reconciler with a finalizer |
    /// | `ends` | uid | 2,048 for each reconciler |
    /// | `guard windows` | budget, and kind where each counts by itself | 64, or twice those in which something is counted, for each guard of a reconciler |
    /// | `events` | what they are about | 12,288: 4,096 for each of notes, Events and limits |
    /// | `queued events` | Event | 1,000 for each of two tasks, one of which ends |
    ///
    /// An owner has entries for the objects that its sets had in the last call, and for at most 1,024 others that were
    /// not deleted because nothing says who applied them.
    #[must_use]
    pub fn remembered(&self) -> Vec<Remembered> {
        let shared = self.shared();
        let mut all = Vec::new();
        shared.sets.remembered(&mut all);
        all.push(shared.applied.remembered());
        all.extend(shared.events.remembered());
        let reconcilers = shared.reconcilers.list();
        reconcilers
            .iter()
            .for_each(|each| each.remembered(&mut all));
        all
    }
}
