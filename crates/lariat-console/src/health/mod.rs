//! Health: what is checked, and the answers of probes.

mod builtin;
mod check;
mod checkup;
mod report;

pub use check::HealthCheck;
pub(crate) use checkup::{Checkup, Limits};
pub(crate) use report::{Answer, Probe, answer, answer_one};
