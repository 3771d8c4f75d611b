//! How long a call may take.

use std::time::Duration;

use kube::core::Duration as GoDuration;
use tokio::time::Instant;

/// The time without a word of the API server.
const DEFAULT: Duration = Duration::from_secs(10);
/// The longest time for which an API server waits.
const LONGEST: Duration = Duration::from_secs(30);
/// The most that is kept back for the way of the answer; a tenth, if that is less.
const WAY: Duration = Duration::from_millis(500);

/// When a call has failed, and how long it may take in all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) limit: Duration,
}

impl Deadline {
    /// Returns the deadline of a call that begins now, from the parameter `timeout` of its query.
    ///
    /// A call ends a little earlier than the API server waits, so that it gets to know why.
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
    let given = named
        .next()
        .and_then(|(_, value)| value.parse::<GoDuration>().ok());
    let given = given
        .filter(|given| !given.is_negative())
        .map(Duration::from);
    let limit = match given {
        Some(given) if !given.is_zero() => given.min(LONGEST),
        _ => DEFAULT,
    };
    limit - (limit / 10).min(WAY)
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
        assert_eq!(limit(None), Duration::from_millis(9_500));
    }
}
