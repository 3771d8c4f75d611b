//! The state machine of the queue, without a clock and without tasks.
//!
//! Every method takes the current time as an argument, so tests and simulations drive the queue deterministically.
//!
//! How a key moves through the modules:
//!
//! 1. `machine` has the public operations: `add`, `get`, `done`, `give_back`. They look up the key's entry in `index`.
//! 2. `entry` is the state of one key: its phase, its dirty lanes, its delayed lanes and their failures.
//! 3. `moves` changes the phase. A due key gets a ticket in `ready`; a delayed lane gets a deadline in `delays`.
//! 4. `admission` lets lanes wait whose `gate` is full or closed, and makes their keys due again.
//! 5. `get` releases expired deadlines and pops the next ticket, by priority and ageing.
//! 6. `snapshot` reads the state without changing it. `clock` converts instants to the numbers stored here.

mod admission;
mod clock;
mod delays;
mod entry;
mod gate;
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
