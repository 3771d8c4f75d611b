//! Few lines in the log about many failures.
//!
//! One cause often makes a handler fail for many keys, many times. The first failure is logged at once; those that
//! follow, of whatever key, are counted, and summed up after 1, 10 and 60 seconds, then every ten minutes. A second
//! after the last of the keys succeeded that is logged too.

mod failed;
mod failures;
mod group;
mod line;
mod signature;

pub(super) use failed::{Failed, Next};
pub(crate) use failures::Failures;
pub(super) use failures::KEYS;
