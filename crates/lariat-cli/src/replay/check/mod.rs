//! Replaying a recording with today's code, and comparing what it decides.

mod check;
mod machines;
mod outcome;
mod queue;
mod reflector;
mod report;

pub(super) use check::check;
