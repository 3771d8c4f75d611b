//! Whole programs on Lariat in one thread, in virtual time, from one seed.
//!
//! A [`Simulation`] runs programs (factories, handlers, operators) against the embedded cluster while foreign clients
//! write, the network breaks, the API server forgets, and processes are killed. Every clock, every random number and
//! the order of all tasks come from the seed, so a failing run can be repeated. It fails if a program panics, ends unasked or
//! does not end, and if a check of the cluster [at rest](Simulation::at_rest) does.

mod activity;
mod actors;
mod chaos;
mod driver;
mod event;
mod failure;
mod host;
#[doc(hidden)]
pub mod internals;
mod lease_report;
mod logs;
mod machine;
mod network;
mod objects;
mod observed;
mod observer;
mod opaque;
mod panics;
mod plan;
mod polls;
mod process;
mod program;
mod rate;
mod record;
mod report;
mod scenario;
mod shrink;
mod simulation;
mod stamp;
mod trace;
mod trace_filter;
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
