//! How much an operator remembers.

use lariat_core::Remembered;

use super::operator::Operator;
use crate::reconciler::remembered;

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
        let mut all = Vec::new();
        self.remembered_events(&mut all);
        remembered(self.state(), &mut all);
        all
    }
}
