//! Cron schedules.

use anyhow::{Context, Result};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The maximum number of missed times that are counted. A schedule of every minute and an operator that was down for a
/// year would count half a million.
pub const MOST_MISSED: usize = 100;

/// A cron schedule, in UTC.
///
/// Five fields, or `@hourly` and the like. A day matches if the day of the month *or* the day of the week matches, when
/// both are set; Sunday is 0 or 7; days and months have names; ranges have steps.
#[derive(Debug, Clone)]
pub struct Schedule(Cron);

/// The times that were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// The latest of them.
    pub latest: Timestamp,
    /// How many there are, counted up to one more than [`MOST_MISSED`].
    pub count: usize,
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    ///
    /// The schedule is invalid, or never occurs, such as the 30th of February.
    pub fn parse(text: &str) -> Result<Self> {
        let parser = CronParser::builder().seconds(Seconds::Disallowed);
        let cron = parser.year(Year::Disallowed).build().parse(text);
        let schedule = Self(cron.with_context(|| format!("the schedule {text:?} cannot be read"))?);
        let next = schedule.next(Timestamp::UNIX_EPOCH);
        next.with_context(|| format!("the schedule {text:?} never comes"))?;
        Ok(schedule)
    }

    /// Returns the first time after `after`.
    #[must_use]
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let next = self.0.find_next_occurrence(&civil(after), false);
        timestamp(next.ok()?)
    }

    /// Returns the times after `after`, up to and including `until`.
    #[must_use]
    pub fn missed(&self, after: Timestamp, until: Timestamp) -> Option<Missed> {
        let latest = self.0.find_previous_occurrence(&civil(until), true);
        let latest = timestamp(latest.ok()?).filter(|latest| *latest > after)?;
        let times = self.0.iter_after(civil(after));
        let count = times
            .take(MOST_MISSED + 1)
            .take_while(|time| *time <= civil(latest));
        let count = count.count();
        Some(Missed { latest, count })
    }
}

fn civil(time: Timestamp) -> DateTime {
    TimeZone::UTC.to_datetime(time)
}

fn timestamp(civil: DateTime) -> Option<Timestamp> {
    TimeZone::UTC.to_timestamp(civil).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the first times after Saturday 2026-11-21, 20:06:37.
    #[track_caller]
    fn check(schedule: &str, expected: &[&str]) {
        let parsed = Schedule::parse(schedule).unwrap();
        let mut time: Timestamp = "2026-11-21T20:06:37Z".parse().unwrap();
        for expected in expected {
            time = parsed.next(time).unwrap();
            assert_eq!(time.to_string(), format!("{expected}:00Z"), "{schedule}");
        }
    }

    #[test]
    fn days_of_the_month_and_of_the_week_are_either_or() {
        check(
            "0 0 13 * FRI",
            &[
                "2026-11-27T00:00",
                "2026-12-04T00:00",
                "2026-12-11T00:00",
                "2026-12-13T00:00",
            ],
        );
        check("0 0 13 * *", &["2026-12-13T00:00"]);
        check("0 0 * * 5", &["2026-11-27T00:00"]);
    }

    #[test]
    fn seven_is_sunday_and_days_and_months_have_names() {
        for schedule in ["0 0 * * 7", "0 0 * * 0", "0 0 * * sun"] {
            check(schedule, &["2026-11-22T00:00", "2026-11-29T00:00"]);
        }
        check(
            "0 0 1 FEB-MAR *",
            &["2027-02-01T00:00", "2027-03-01T00:00", "2028-02-01T00:00"],
        );
    }

    #[test]
    fn a_stepped_range_ends_where_it_says() {
        check(
            "*/15 3-4/2 * * *",
            &[
                "2026-11-22T03:00",
                "2026-11-22T03:15",
                "2026-11-22T03:30",
                "2026-11-22T03:45",
                "2026-11-23T03:00",
            ],
        );
        check(
            "10-30/10 * * * *",
            &[
                "2026-11-21T20:10",
                "2026-11-21T20:20",
                "2026-11-21T20:30",
                "2026-11-21T21:10",
            ],
        );
    }

    #[test]
    fn what_is_no_schedule_is_said() {
        for (schedule, expected) in [
            ("", "cannot be read"),
            ("soon", "cannot be read"),
            ("60 * * * *", "cannot be read"),
            ("* * * * * *", "cannot be read"),
            ("0 0 30 2 *", "never comes"),
        ] {
            let error = Schedule::parse(schedule).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{schedule}: {error}");
        }
    }

    #[test]
    fn missed_times_are_counted_without_the_first_and_with_the_last_moment() {
        let schedule = Schedule::parse("*/10 * * * *").unwrap();
        let missed = |after: &str, until: &str| {
            let time = |text| format!("2026-11-21T{text}Z").parse().unwrap();
            let missed = schedule.missed(time(after), time(until))?;
            Some((missed.latest.to_string(), missed.count))
        };
        let at = |time: &str, count| Some((format!("2026-11-21T{time}Z"), count));
        assert_eq!(missed("20:00:00", "20:09:59.9"), None);
        assert_eq!(missed("20:00:00", "20:10:00"), at("20:10:00", 1));
        assert_eq!(missed("20:10:00", "20:39:00"), at("20:30:00", 2));
        assert_eq!(
            missed("20:10:00", "20:00:00"),
            None,
            "the clock was set back"
        );
        assert_eq!(missed("00:00:00", "23:00:00"), at("23:00:00", 101));
    }
}
