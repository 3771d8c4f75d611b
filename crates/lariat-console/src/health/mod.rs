//! Health: what is checked, and the answers of probes.

mod builtin;
mod check;
mod checkup;
mod report;

pub(crate) use builtin::Limits;
pub use check::HealthCheck;
pub(crate) use checkup::Checkup;
pub(crate) use report::{Answer, Probe, answer, answer_one};
