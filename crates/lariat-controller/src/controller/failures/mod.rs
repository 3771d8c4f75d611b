//! Rate-limited logging of handler failures.
//!
//! One cause, such as an outage, often makes a handler fail for many keys, many times. The first failure with an error
//! is logged immediately. Further failures with the same error, whatever the key, are counted and summarised after 1,
//! 10 and 60 seconds, then every ten minutes. The recovery is logged one second after the last failing key succeeded.
//!
//! A key may leave the controller without a call: it moves to another member of the ring, or its handler ends. So no exit
//! is recorded; `sweep` asks the queue which keys are still retried, before a summary and before a count is read.
//!
//! `signature` recognises the same error, `group` counts its failures, `failures` owns the groups of all handlers, and
//! `line` formats log lines.

mod failed;
mod failures;
mod group;
mod line;
mod signature;

pub(super) use failed::{Failed, Next};
pub(crate) use failures::Failures;
pub(super) use failures::KEYS;
