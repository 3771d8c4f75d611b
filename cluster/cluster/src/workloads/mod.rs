//! The settings and the state of simulated workloads.

mod settings;
mod simulated;

pub use settings::Workloads;
pub(crate) use simulated::Simulated;
