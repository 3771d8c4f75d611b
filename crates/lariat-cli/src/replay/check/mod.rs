//! Giving what was recorded to today's code, and comparing what it decides.

mod queue;
mod reflector;
mod report;

pub(super) use report::check;
