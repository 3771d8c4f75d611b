//! The wall clock, for times that outlive a process. What is waited for is measured by tokio's clock.

use std::time::SystemTime;

/// Returns what time it is.
///
/// As with [`SystemTime::now`], a later call may return an earlier time, because clocks are set back.
#[must_use]
#[allow(
    clippy::disallowed_methods,
    reason = "the one place where the wall clock is read"
)]
pub fn now() -> SystemTime {
    SystemTime::now()
}
