//! Decides which of the published events are written.
//!
//! A correlator is a state machine without I/O, with the time as a parameter. [`Correlator`] chooses between
//! `counting`, for `v1` Events, and `series`, for `events.k8s.io/v1`. Both use `subject` for the keys of equal and
//! similar events, `spam` for the limit, `recent` for bounded maps, and `names` for the names of Events.

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
