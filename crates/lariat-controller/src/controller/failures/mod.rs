//! Rate-limited logging of handler failures.
//!
//! One cause, such as an outage, often makes a handler fail for many keys, many times. The first failure with an error
//! is logged immediately. Further failures with the same error, whatever the key, are counted and summarised after 1,
//! 10 and 60 seconds, then every ten minutes. The recovery is logged one second after the last failing key succeeded.
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
