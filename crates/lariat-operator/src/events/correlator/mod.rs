//! Decides which of the published events are written: a state machine with the time as input.

mod correlator;
mod counting;
mod decision;
mod names;
mod recent;
mod series;
mod spam;
mod subject;
#[cfg(test)]
mod tests;

pub(super) use correlator::Correlator;
pub(super) use decision::Decision;
