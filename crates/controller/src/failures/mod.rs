//! Logs the failures of a handler, and counts the keys that it fails for.
//!
//! One cause, such as an outage, often makes a handler fail for many keys, many times. Due to be logged are the first
//! failure of a key with an error, and then the attempts that are powers of two. The first such failure with an error
//! is logged at once; those of the next second, whatever the key, are one line with their number and a few keys; those
//! of the two seconds after it another one, and so on, up to ten minutes. The recovery is logged one second after the
//! last failing key succeeded.
//!
//! A key may leave the controller without a call: it moves to another member of the ring, or a stop ends its retries.
//! So no exit is recorded: before a line and before a count is read, `sweep` asks the queue which keys are still
//! retried. What is known of a handler ends with its lane.
//!
//! `signature` recognises the same error, `group` counts its failures, `recent` has all groups of a handler.

mod failed;
mod group;
mod recent;
mod signature;

pub(crate) use failed::Failed;
pub(crate) use recent::{Failures, KEYS};
