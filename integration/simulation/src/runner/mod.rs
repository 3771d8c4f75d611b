//! The command `simulate`: many seeds, on all processors.

mod command;
mod options;
mod paint;

pub use command::main;
