//! Whole programs on Lariat in one thread, in virtual time, from one seed.
//!
//! A [`Simulation`] runs programs (factories, handlers, operators) against the embedded cluster while foreign clients
//! write, the network breaks, the API server forgets, and processes are killed. Every clock, every random number and
//! the order of all tasks come from the seed, so a failing run can be repeated. During the run and at rest, checkers
//! verify what the programs saw and did.

mod activity;
mod actors;
mod chaos;
mod check;
mod coverage;
mod driver;
mod event;
mod failure;
mod host;
mod lease_report;
mod logs;
mod machine;
mod network;
mod objects;
mod observed;
mod operator_action;
mod oracle;
mod panics;
mod plan;
mod polls;
mod process;
mod program;
mod rate;
mod record;
mod report;
#[doc(hidden)]
pub mod runner;
mod scenario;
mod setup;
mod shop;
mod shrink;
mod simulation;
mod trace;
mod trace_filter;
mod trial;
mod world;

pub use chaos::Chaos;
pub use failure::Failure;
pub use objects::Objects;
pub use process::Process;
pub use record::Violation;
pub use report::Report;
pub use simulation::Simulation;
pub use trace::Trace;

/// Compiles and runs the program in the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/simulator.md")]
struct Guide;
