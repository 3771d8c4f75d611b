//! The plans of the trial.

mod command;
mod generate;
mod sequence;
#[cfg(test)]
mod tests;

pub(crate) use command::{Command, NAMES, OwnWrite, Verb};
pub(crate) use generate::generate;
