//! The plan of a run: a list of steps from the seed, which shrinking reduces.

mod generate;
mod names;
mod step;
mod swarm;

pub(crate) use generate::generate;
pub use generate::{Background, PlanBounds};
pub(crate) use names::Names;
pub use step::{Change, Fault, FaultKind, PlanStep, ProcessFault, StepAction, Write};
pub use swarm::Swarm;

#[cfg(test)]
mod tests;
