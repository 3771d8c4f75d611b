//! The sizes of an operator's internal structures.

use lariat_core::TableSize;

use super::operator::Operator;
use crate::reconciler::table_sizes;

impl Operator {
    /// Returns the size and the bound of every internal structure.
    ///
    /// Use it for checks, and for gauges of long-running programs. Those of the factory are not included; see
    /// [`SharedControllerFactory::table_sizes`](lariat_controller::SharedControllerFactory::table_sizes). It holds
    /// locks briefly, and its cost does not grow with the number of objects.
    ///
    /// | `name` | keyed by | bound |
    /// |---|---|---|
    /// | `owners of sets` | object key | for each kind 64, or twice the owners that exist; dropped with the last reconciler of the kind |
    /// | `applied kinds`, `forbidden kinds` | kind | 1,024 |
    /// | `applied statuses` | uid | 65,536 |
    /// | `cleaned objects` | uid | 16,384 for each reconciler with a finalizer |
    /// | `ends` | uid | 2,048 for each reconciler |
    /// | `guard windows` | budget, and kind if each is counted separately | 64, or twice those with a count, for each guard of a reconciler |
    /// | `events` | regarding object | 12,288: 4,096 for each of notes, Events and limits |
    /// | `queued events` | Event | 1,000 for each of two tasks, one of which ends |
    ///
    /// An owner of sets has an entry for each object that its sets had in the last call, and for at most 1,024 others,
    /// which were not deleted because it is unknown who applied them.
    #[must_use]
    pub fn table_sizes(&self) -> Vec<TableSize> {
        let mut all = Vec::new();
        self.event_table_sizes(&mut all);
        table_sizes(self.state(), &mut all);
        all
    }
}
