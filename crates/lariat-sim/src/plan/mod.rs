//! The plan of a run: a list of steps from the seed, which shrinking reduces.

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
