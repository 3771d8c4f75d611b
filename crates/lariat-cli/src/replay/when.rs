//! Times on the command line.

use std::str::FromStr;
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};

/// From when, or until when, something is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// At a time by the wall clock.
    At(Timestamp),
    /// So long after the beginning of each session.
    After(Duration),
    /// So long before the end of the recording.
    Before(Duration),
}

impl When {
    /// Returns the wall-clock time of a record.
    ///
    /// It is computed from the start of the session and the end of the recording.
    pub(super) fn resolve(self, began: SystemTime, ended: SystemTime) -> SystemTime {
        match self {
            Self::At(at) => at.into(),
            // A span that is too long for the clock leaves nothing out, or everything, as it should.
            Self::After(after) => began.checked_add(after).unwrap_or(ended),
            Self::Before(before) => ended.checked_sub(before).unwrap_or(SystemTime::UNIX_EPOCH),
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A time first: of the other forms none can be read as one.
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(Self::At(at));
        }
        let (is_before, span) = match text.strip_prefix('-') {
            Some(span) => (true, span),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let span = span.parse::<SignedDuration>().ok();
        match span.and_then(|span| Duration::try_from(span).ok()) {
            Some(span) if is_before => Ok(Self::Before(span)),
            Some(span) => Ok(Self::After(span)),
            None => Err(
                "it is no time; give one such as 2026-11-22T02:13:00Z, a time since the start of the process \
                 such as 90s or 1h5m, or one before the end of the recording such as -10m"
                    .to_owned(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_count_from_either_end() {
        let at = |text: &str| text.parse::<When>();
        assert_eq!(at("90s"), Ok(When::After(Duration::from_secs(90))));
        assert_eq!(at("+1h5m"), Ok(When::After(Duration::from_secs(3900))));
        assert_eq!(at("250ms"), Ok(When::After(Duration::from_millis(250))));
        assert_eq!(at("-10m"), Ok(When::Before(Duration::from_secs(600))));
        let noon = Timestamp::from_second(1_795_348_800).unwrap();
        assert_eq!(at("2026-11-22T12:00:00Z"), Ok(When::At(noon)));
        for wrong in ["", "-", "tomorrow", "12:00", "--5s"] {
            assert!(at(wrong).unwrap_err().contains("is no time"), "{wrong}");
        }
    }

    #[test]
    fn a_time_before_the_end_is_counted_from_the_end() {
        let (began, ended) = (
            SystemTime::UNIX_EPOCH + Duration::from_secs(100),
            SystemTime::UNIX_EPOCH + Duration::from_secs(200),
        );
        let second = |when: When| {
            let time = when.resolve(began, ended);
            time.duration_since(SystemTime::UNIX_EPOCH)
                .unwrap()
                .as_secs()
        };
        assert_eq!(second(When::After(Duration::from_secs(5))), 105);
        assert_eq!(second(When::Before(Duration::from_secs(5))), 195);
    }
}
