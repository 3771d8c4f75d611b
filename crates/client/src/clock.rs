//! The expiry of credentials, by the wall clock; delays use tokio's clock.

use std::time::Duration;

use jiff::Timestamp;
use lariat_core::clock;

/// Returns how long it is until a time in Kubernetes' format.
///
/// Zero if the time has passed.
pub(crate) fn until(time: &str) -> Result<Duration, jiff::Error> {
    let time: Timestamp = time.parse()?;
    let left = time.duration_since(clock::now().try_into()?);
    Ok(left.try_into().unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_simulated_clock_says_how_long_a_credential_lasts() {
        let _simulated = clock::simulate(|| SystemTime::UNIX_EPOCH + Duration::from_secs(60));
        let left = |time| until(time).unwrap();
        assert_eq!(left("1970-01-01T00:01:30Z"), Duration::from_secs(30));
        assert_eq!(left("1970-01-01T00:00:59Z"), Duration::ZERO);
    }
}
