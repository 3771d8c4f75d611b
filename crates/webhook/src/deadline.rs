//! The deadline of a call.

use std::time::Duration;

use tokio::time::Instant;

/// The time limit if the API server gives none.
const DEFAULT: Duration = Duration::from_secs(10);
/// The longest time that an API server waits.
const LONGEST: Duration = Duration::from_secs(30);
/// The maximum time that is reserved for the answer to arrive; at most a tenth.
const WAY: Duration = Duration::from_millis(500);

/// The time at which a call fails, and how long it may take in all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) limit: Duration,
}

impl Deadline {
    /// Returns the deadline of a call that begins now.
    ///
    /// The time limit is the parameter `timeout` of the query. The call ends a little before the API server gives up,
    /// so that the API server gets an answer with the reason.
    pub(crate) fn of_query(query: Option<&str>) -> Self {
        let limit = limit(query);
        Self {
            at: Instant::now() + limit,
            limit,
        }
    }
}

fn limit(query: Option<&str>) -> Duration {
    let parameters = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let mut named = parameters.filter(|(name, _)| name == "timeout");
    let given = named.next().and_then(|(_, value)| parse(&value));
    let limit = match given {
        Some(given) if !given.is_zero() => given.min(LONGEST),
        _ => DEFAULT,
    };
    // With an answer in time the API server quotes the reason; otherwise it reports only that the time is over.
    limit - (limit / 10).min(WAY)
}

/// Parses a duration in Go's form, such as `10s` or `1m30s`.
///
/// Returns `None` if it is malformed or too long. Any client may send it, so nothing may overflow or panic.
fn parse(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut all = Duration::ZERO;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number);
        let unit = after.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = after.split_at(unit.unwrap_or(after.len()));
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" | "μs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        let part = seconds * number.parse::<f64>().ok()?;
        all = all.checked_add(Duration::try_from_secs_f64(part).ok()?)?;
        rest = after;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_a_little_before_the_api_server_gives_up() {
        let check = |query: &str, millis| {
            assert_eq!(limit(Some(query)), Duration::from_millis(millis), "{query}");
        };
        check("timeout=10s", 9_500);
        check("timeout=1s", 900);
        check("timeout=1m0s", 29_500);
        check("a=b&timeout=500ms", 450);
        check("timeout=0s", 9_500);
        check("timeout=-1s", 9_500);
        check("timeout=soon", 9_500);
        check("timeout=1.5s", 1_350);
        check("timeout=", 9_500);
        check("timeout=10", 9_500);
        check("timeout=s", 9_500);
        assert_eq!(limit(None), Duration::from_millis(9_500));
    }

    #[test]
    fn a_timeout_that_no_duration_can_hold_is_the_default() {
        for given in [
            "99999999999999999999h",
            "1s-1s",
            "-1h",
            "1.1.1s",
            "5000000000000000h5000000000000000h",
            "9h%F0%9F%95%9B",
            "NaNs",
        ] {
            let query = format!("timeout={given}");
            assert_eq!(limit(Some(&query)), Duration::from_millis(9_500), "{given}");
        }
        let long = format!("timeout={}s", "9".repeat(400));
        assert_eq!(limit(Some(&long)), Duration::from_millis(9_500));
        assert_eq!(limit(Some("timeout=90000h")), Duration::from_millis(29_500));
    }
}
