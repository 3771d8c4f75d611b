//! Spans of time as kubectl prints them.

use jiff::Timestamp;
pub(super) use lariat_apimachinery::go_time::ZERO;

/// The cell of an impossible time.
pub(super) const INVALID: &str = "<invalid>";

/// The cell of a missing time.
pub(super) const UNKNOWN: &str = "<unknown>";

/// The most seconds that a duration of Go has: its nanoseconds have 64 bits.
const MOST_SECONDS: i64 = i64::MAX / 1_000_000_000;

/// Returns how long ago a time was.
///
/// Source: `translateTimestampSince` in `k8s.io/kubernetes/pkg/printers/internalversion`.
pub(super) fn since(time: &str, now: Timestamp) -> String {
    match time.parse() {
        Ok(time) if time == ZERO => UNKNOWN.to_owned(),
        Ok(time) => between(time, now),
        Err(_) => INVALID.to_owned(),
    }
}

/// Returns how much time is between two times.
pub(super) fn between(start: Timestamp, end: Timestamp) -> String {
    // As `Time.Sub`: the difference is made whole, not both times, and is bounded.
    human(end.duration_since(start).as_secs().min(MOST_SECONDS))
}

/// Writes some seconds with at most two units, the finer one only while it matters.
///
/// Source: `HumanDuration` in `k8s.io/apimachinery/pkg/util/duration`.
pub(super) fn human(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let two = |large: i64, unit: char, small: i64, small_unit: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{small_unit}"),
    };
    match seconds {
        // A little is forgiven to clocks that differ.
        ..=-2 => INVALID.to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * 60 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 3 * 60 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 8 * 24 => two(hours / 24, 'd', hours % 24, 'h'),
        _ if hours < 2 * 365 * 24 => format!("{}d", hours / 24),
        _ if hours < 8 * 365 * 24 => two(hours / 24 / 365, 'y', hours / 24 % 365, 'd'),
        _ => format!("{}y", hours / 24 / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_as_kubectl_writes_them() {
        const DAY: i64 = 24 * 3600;
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (9 * 60 + 59, "9m59s"),
            (10 * 60, "10m"),
            (179 * 60, "179m"),
            (3 * 3600, "3h"),
            (7 * 3600 + 60, "7h1m"),
            (8 * 3600 + 60, "8h"),
            (47 * 3600, "47h"),
            (2 * DAY, "2d"),
            (7 * DAY + 3600, "7d1h"),
            (8 * DAY + 3600, "8d"),
            (729 * DAY, "729d"),
            (2 * 365 * DAY, "2y"),
            (3 * 365 * DAY + 5 * DAY, "3y5d"),
            (9 * 365 * DAY + 5 * DAY, "9y"),
        ] {
            assert_eq!(human(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn a_span_is_bounded_and_the_zero_of_a_time_is_none() {
        let now = "2024-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(since("1000-01-01T00:00:00Z", now), "292y");
        assert_eq!(since("0001-01-01T00:00:00Z", now), UNKNOWN);
        assert_eq!(between(ZERO, now), "292y");
    }

    #[test]
    fn times_are_compared_and_what_is_no_time_is_invalid() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        assert_eq!(since("nonsense", now), "<invalid>");
        assert_eq!(since("1970-01-12T13:46:00Z", now), "40s");
        let half = now - std::time::Duration::from_millis(500);
        for (time, expected) in [
            ("1970-01-12T13:46:38Z", "1s"),
            ("1970-01-12T13:46:41Z", "0s"),
            ("1970-01-12T13:46:42Z", "<invalid>"),
        ] {
            assert_eq!(since(time, half), expected, "{time}");
        }
    }
}
