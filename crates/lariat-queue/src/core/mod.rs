//! The queue without clock and tasks: a state machine in which time is a parameter.

mod clock;
mod delays;
mod entry;
mod index;
mod machine;
mod moves;
mod ready;
mod snapshot;
#[cfg(test)]
mod tests;

pub(crate) use index::Hasher;
pub(crate) use machine::Group;

pub use machine::{Item, QueueCore, Verdict};
pub use ready::Ageing;
