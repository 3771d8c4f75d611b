//! The command `simulate`: many seeds, on all processors.

mod options;
mod paint;
mod runner;

pub use runner::main;
