//! The wall clock, for timestamps in objects. Durations are measured with tokio's clock.

use jiff::Timestamp;
use lariat_core::clock;

/// Returns the present time.
///
/// Only this function reads the wall clock; all other code takes the time as a parameter.
pub(crate) fn now() -> Timestamp {
    clock::now().try_into().unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_simulated_clock_is_read() {
        let _simulated = clock::simulate(|| SystemTime::UNIX_EPOCH + Duration::from_millis(90_500));
        assert_eq!(now().to_string(), "1970-01-01T00:01:30.5Z");
    }
}
