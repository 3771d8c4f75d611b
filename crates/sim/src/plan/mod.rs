//! The plan of a run: a list of steps from the seed, which shrinking reduces.

mod generate;
mod names;
mod sequence;
mod step;
mod swarm;

pub(crate) use generate::{PlanBounds, generate};
pub(crate) use names::Names;
pub(crate) use step::{
    Change, Command, Fault, FaultKind, NAMES, OwnWrite, PlanStep, ProcessFault, StepAction, Verb,
    Write,
};
