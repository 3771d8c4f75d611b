//! The wall clock, for the times that are written into objects. What is waited for is measured by tokio's clock.

use jiff::Timestamp;

/// Returns what time it is. Everything else takes the time as a parameter.
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}
