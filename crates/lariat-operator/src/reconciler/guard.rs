//! A reconciler with guards.

use lariat_cache::View;

use super::builder::Reconciler;
use crate::guard::Guard;
use crate::needs::Rule;

impl<K: View> Reconciler<K> {
    /// Gives what the reconciler writes a budget: in reconciling, cleaning up, and being notified of what is gone. Of several
    /// guards each counts, and any refuses. That one has tripped is said in an Event on the object that was reconciled,
    /// which the reconciler then [needs](crate::Operator::rules) to be allowed.
    pub fn guard(mut self, guard: Guard) -> Self {
        self.setup.guards.push(guard);
        let events = Rule::events();
        self.needs(events)
    }
}
