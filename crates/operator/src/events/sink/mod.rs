//! Writes Events one after the other, with retries.

mod answer;
mod sink;

pub(super) use sink::{Counts, Sink};
