//! Writes Events, one after the other.

mod answer;
mod sink;

pub(super) use sink::{Counts, Sink};
