//! What happens in a run, and when: a list of steps that comes from the seed and that shrinking takes steps out of.

mod generate;
mod names;
mod sequence;
mod step;
mod swarm;

pub(crate) use generate::{Cast, generate};
pub(crate) use names::Names;
pub(crate) use step::{
    Change, Command, Fate, Fault, FaultKind, Happening, NAMES, Own, PlanStep, Verb, Write,
};
