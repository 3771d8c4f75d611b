//! Health: the checks of a program, and the responses of probes.
//!
//! `builtin` has the checks of every program, `check` those that a program adds, `checkup` runs all of them, and
//! `report` formats the results as the API server does.

mod builtin;
mod check;
mod checkup;
mod report;

pub(crate) use builtin::Limits;
pub use check::HealthCheck;
pub(crate) use checkup::Checkup;
pub(crate) use report::{Answer, Probe, answer, answer_one};
