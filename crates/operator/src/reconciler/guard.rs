//! The method of [`Reconciler`] that adds a guard.

use lariat_cache::View;

use super::builder::Reconciler;
use crate::guard::Guard;
use crate::needs::Rule;

impl<K: View> Reconciler<K> {
    /// Adds a guard, which limits the number of objects that the reconciler writes.
    ///
    /// It covers the reconciler, its cleanup and its function for deletions. Several guards each count every write, and
    /// each can refuse it. A trip is published as an Event about the object that was reconciled; the permission for it
    /// is among the [rules](crate::Operator::rules). See [`Guard`] for an example.
    pub fn guard(mut self, guard: Guard) -> Self {
        self.setup.guards.push(guard);
        let events = Rule::events();
        self.needs(events)
    }
}
