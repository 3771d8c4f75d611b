//! Guards of reconcilers.

use lariat_cache::View;

use super::builder::Reconciler;
use crate::guard::Guard;
use crate::needs::Rule;

impl<K: View> Reconciler<K> {
    /// Adds a guard, which limits what the reconciler may write.
    ///
    /// It covers the reconciler, its cleanup and its function for deletions. Of several guards each counts every write,
    /// and each can refuse it. A trip is published as an Event about the object that was reconciled; the permission for
    /// that is among the [rules](crate::Operator::rules).
    pub fn guard(mut self, guard: Guard) -> Self {
        self.setup.guards.push(guard);
        let events = Rule::events();
        self.needs(events)
    }
}
