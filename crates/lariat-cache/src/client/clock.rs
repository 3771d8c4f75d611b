//! The wall clock, for when credentials expire. What is waited for is measured by tokio's clock.

use std::time::Duration;

use jiff::Timestamp;

/// Returns how long it is until a time as Kubernetes writes it; zero if it has passed.
pub(super) fn until(time: &str) -> Result<Duration, jiff::Error> {
    let time: Timestamp = time.parse()?;
    let left = time.duration_since(Timestamp::now());
    Ok(left.try_into().unwrap_or(Duration::ZERO))
}
