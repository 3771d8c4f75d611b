//! What a program gets from the simulation: a client, a factory whose handlers are watched, and the end of its life.

mod process;

pub use process::Process;
