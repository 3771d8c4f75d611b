//! How nodes and workloads are simulated.

mod settings;
mod simulated;

pub use settings::Workloads;
pub(crate) use simulated::Simulated;
