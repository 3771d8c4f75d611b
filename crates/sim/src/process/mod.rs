//! A program's interface to the simulation: a client, an observed factory, and its shutdown.

mod process;

pub use process::Process;
