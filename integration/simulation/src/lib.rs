//! The simulation that tests Lariat itself, with the command `simulate`.
//!
//! Programs of its own ([`of_lariat`], [`of_replicas`]) run by plans that ask more of them than chance does. An
//! oracle knows every state of the server, checkers compare with it what the programs saw and did, and the coverage
//! counts which faults met which states of a process.

mod check;
mod coverage;
mod lease_scope;
mod observer;
mod operator_action;
mod oracle;
mod plan;
mod runner;
mod setup;
mod shop;
mod trial;

pub use coverage::Coverage;
pub use runner::main;
pub use trial::{Trial, of_lariat, of_replicas};
