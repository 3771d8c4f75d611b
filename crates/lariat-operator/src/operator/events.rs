//! The Events of an operator.

use super::operator::Operator;
use crate::events::Recorder;

impl Operator {
    /// Returns the recorder of Events, for use outside reconcilers; inside there is [`Reconcile::event`](crate::Reconcile::event).
    #[must_use]
    pub fn events(&self) -> Recorder {
        Recorder::clone(&Recorder::of(self.state()))
    }
}
