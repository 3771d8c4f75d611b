//! The wall clock, moved by tokio's clock.

use std::time::Duration;

use jiff::Timestamp;
use lariat_core::clock;
use tokio::time::Instant;

/// Wall-clock time that follows tokio's clock when that is paused or advanced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started: Instant,
    started_at: Timestamp,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            started_at: clock::now().try_into().unwrap_or(Timestamp::MAX),
        }
    }

    /// Returns the present time as a Kubernetes `Time`: RFC 3339, whole seconds, UTC.
    pub(crate) fn now(&self) -> String {
        self.later(0)
    }

    /// Returns the present.
    pub(crate) fn timestamp(&self) -> Timestamp {
        let now = self.started_at.checked_add(self.started.elapsed());
        now.unwrap_or(Timestamp::MAX)
    }

    /// Returns the time some seconds from now, or the last there is.
    pub(crate) fn later(&self, seconds: u64) -> String {
        let later = Duration::from_secs(seconds);
        let since = self.started.elapsed().saturating_add(later);
        text(self.started_at.checked_add(since).unwrap_or(Timestamp::MAX))
    }

    /// Returns the present time as headers of HTTP have times.
    pub(crate) fn now_in_http(&self) -> String {
        in_http(self.timestamp(), "GMT")
    }

    /// Returns the time some seconds from now as Go's `RFC1123` writes it.
    ///
    /// It is that of headers of HTTP, but for the name of the zone.
    pub(crate) fn later_in_rfc1123(&self, seconds: u64) -> String {
        let time = self.timestamp();
        let later = time.checked_add(Duration::from_secs(seconds));
        in_http(later.unwrap_or(time), "UTC")
    }

    /// Returns a time some seconds earlier.
    ///
    /// A text that is no time counts as the present.
    pub(crate) fn earlier(&self, time: &str, seconds: u64) -> String {
        let then = time.parse().unwrap_or_else(|_| self.timestamp());
        let by = Duration::from_secs(seconds);
        text(then.checked_sub(by).unwrap_or(Timestamp::MIN))
    }

    /// Returns whether a time is over.
    pub(crate) fn is_past(&self, time: &str) -> bool {
        time.parse::<Timestamp>()
            .is_ok_and(|time| time < self.timestamp())
    }

    /// Returns whether a time is still to come.
    pub(crate) fn is_later(&self, time: &str) -> bool {
        time.parse::<Timestamp>()
            .is_ok_and(|time| time > self.timestamp())
    }
}

/// Writes a time as Kubernetes writes a `Time`.
fn text(time: Timestamp) -> String {
    // Go drops what is less than a second when it writes a time.
    let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
    whole.to_string()
}

fn in_http(time: Timestamp, zone: &str) -> String {
    time.strftime(&format!("%a, %d %b %Y %H:%M:%S {zone}"))
        .to_string()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_begins_at_the_simulated_time_and_moves_with_tokio() {
        let simulated = clock::simulate(|| SystemTime::UNIX_EPOCH + Duration::from_secs(60));
        let clock = Clock::new();
        drop(simulated);
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(clock.now(), "1970-01-01T00:01:30Z");
        assert_eq!(clock.now_in_http(), "Thu, 01 Jan 1970 00:01:30 GMT");
        assert_eq!(clock.later_in_rfc1123(60), "Thu, 01 Jan 1970 00:02:30 UTC");
    }
}
