//! Rate-limited logging of handler failures.
//!
//! One cause often makes a handler fail for many keys, many times. The first failure with an error is logged
//! immediately. Further ones, of whatever key, are counted and summarised after 1, 10 and 60 seconds, then every ten
//! minutes. One second after the last key succeeded, the recovery is logged too.

mod failed;
mod failures;
mod group;
mod line;
mod signature;

pub(super) use failed::{Failed, Next};
pub(crate) use failures::Failures;
pub(super) use failures::KEYS;
