//! The server the subjects read from, in a process of its own.
//!
//! It is the embedded cluster over loopback HTTP, full of pods. It prints `ready URL` when it serves, then
//! obeys the lines it reads, answering each with a line when it is done, and ends with its input:
//!
//! - `modify N` holds everything back from watches, and changes pods N times in all, round after round. It
//!   answers the version after which every pod changed exactly once more.
//! - `expire` holds everything back, ends all watches, changes the last pod, and forgets the history, so
//!   that clients have to list again. It answers the version before that change.
//! - `probe N CROWD` holds everything back, and changes N pods once each; of CROWD changes one is such a
//!   probe, and the others are of other pods.
//! - `loads` answers how many lists and watches of pods clients have asked for so far.
//! - `release` lets held watches and requests go on.
//! - `pace R` lets them go on too, but watches send R changes a second. Probes say when they were written:
//!   when they were handed to the connection, which is about to write them.

mod api;
mod fill;
mod flow;
mod front;
pub(crate) mod genuine;
mod probes;
mod server;

pub(crate) use server::serve;
