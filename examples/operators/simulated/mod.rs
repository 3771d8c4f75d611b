//! A small operator with a bug that only a simulation of the whole program shows.
//!
//! [`register`] adds a handler that keeps a Secret for each ConfigMap, and deletes it when the ConfigMap is deleted.
//! [`simulation`] runs it while other clients write ConfigMaps, the network fails, and the operator is killed and
//! restarted.

mod mirror;
mod simulation;
#[cfg(test)]
mod tests;

pub use mirror::{Cleanup, register};
pub use simulation::simulation;
