//! Realistic objects in any number, for tests and benchmarks that need a full cluster.

mod config_map;
mod managed;
mod names;
mod node;
mod options;
mod parse;
mod plan;
mod pod;
mod template;
#[cfg(test)]
mod tests;
mod workload;
mod write;

pub use options::Load;
pub use parse::LoadError;
pub use write::Loaded;
