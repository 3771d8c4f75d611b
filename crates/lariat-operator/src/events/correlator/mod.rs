//! What is written of the events that are published: a state machine that is given the time.

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
