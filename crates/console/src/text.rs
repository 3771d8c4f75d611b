//! Formats texts and times for responses.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use lariat_core::{clock, without_credentials};
use lariat_queue::Histogram;

use crate::api::Quantiles;

/// The maximum length of a text from outside, in characters.
const LONGEST: usize = 500;

/// Returns a text without credentials, and cut to 500 characters.
pub(crate) fn shown(text: &str) -> String {
    // A text that is far too long is cut first, to bound the time of the search for credentials. The cut may split a
    // credential so that it is not found, but then it is beyond the part that is shown.
    let end = text
        .char_indices()
        .nth(8 * LONGEST)
        .map_or(text.len(), |(at, _)| at);
    let text = without_credentials(&text[..end]);
    match text.char_indices().nth(LONGEST) {
        None => text.into_owned(),
        Some((end, _)) => format!("{} …", &text[..end]),
    }
}

/// Returns a time as RFC 3339 in UTC, with milliseconds.
pub(crate) fn time(at: SystemTime) -> String {
    let at = Timestamp::try_from(at).unwrap_or(Timestamp::MAX);
    format!("{at:.3}")
}

/// Returns the time that was this long ago.
pub(crate) fn ago(ago: Duration) -> String {
    time(
        clock::now()
            .checked_sub(ago)
            .unwrap_or(SystemTime::UNIX_EPOCH),
    )
}

/// Returns the quantiles of a histogram, in seconds.
pub(crate) fn quantiles(of: &Histogram) -> Quantiles {
    let seconds = |share| of.quantile(share).as_secs_f64();
    Quantiles {
        count: of.count(),
        p50: seconds(0.5),
        p99: seconds(0.99),
        max: of.max().as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters_and_credentials_are_cut_out() {
        let long = "ä".repeat(100_000);
        assert_eq!(shown(&long).chars().count(), LONGEST + 2);
        assert_eq!(shown("token: abc1"), "token: …");
        let secret = format!("{} Bearer {}", "a".repeat(LONGEST - 10), "s".repeat(10_000));
        assert!(!shown(&secret).contains("ss"));
    }

    #[test]
    fn times_are_utc_with_milliseconds() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_500);
        assert_eq!(time(at), "1970-01-01T00:00:01.500Z");
    }
}
