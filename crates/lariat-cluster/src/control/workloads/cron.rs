//! When something is due that recurs: the schedules of CronJobs, in UTC.
//!
//! Source: `github.com/robfig/cron/v3`, `ParseStandard`.

use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// A schedule without any time in this many years has none at all.
const YEARS: i64 = 5;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Points in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Schedule {
    Every(Duration),
    At(Box<Fields>),
}

/// The five fields, each as a set of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// One of the fields for days admits all: a day has to be in both, else in one of them.
    needs_both: bool,
}

/// What a field may contain.
struct Bounds {
    range: RangeInclusive<u32>,
    names: &'static [&'static str],
    /// The number of the first name.
    first: u32,
}

impl Schedule {
    /// Reads five fields, or a descriptor such as `@hourly`; `None` if it is neither.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        // Nobody here knows other zones.
        let text = text.strip_prefix("TZ=UTC ").unwrap_or(text).trim_start();
        if let Some(span) = text.strip_prefix("@every ") {
            let span: jiff::SignedDuration = span.trim().parse().ok()?;
            let span = Duration::try_from(span).ok()?;
            // Whole seconds, at least one.
            let seconds = span.as_secs().max(1);
            return Some(Self::Every(Duration::from_secs(seconds)));
        }
        let text = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return None;
        };
        let is_star = |field: &str| {
            let mut parts = field.split(',');
            parts.any(|part| matches!(part.split('/').next(), Some("*" | "?")))
        };
        Some(Self::At(Box::new(Fields {
            minutes: set(minute, &Bounds::plain(0..=59))?,
            hours: set(hour, &Bounds::plain(0..=23))?,
            days: set(day, &Bounds::plain(1..=31))?,
            months: set(month, &Bounds::named(1..=12, &MONTHS))?,
            weekdays: set(weekday, &Bounds::named(0..=6, &DAYS))?,
            needs_both: is_star(day) || is_star(weekday),
        })))
    }

    /// Returns the first time after another, if there ever is one.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(span) => {
                let whole = Timestamp::from_second(after.as_second()).ok()?;
                whole.checked_add(*span).ok()
            }
            Self::At(fields) => fields.next(after),
        }
    }

    /// Returns the last time up to now that is after another.
    ///
    /// Of many it looks at the last few only, taking the first distance between two for that of all.
    pub(super) fn last(&self, after: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let first = self.next(after).filter(|first| *first <= now)?;
        let Some(second) = self.next(first).filter(|second| *second <= now) else {
            return Some(first);
        };
        let distance = (second.as_second() - first.as_second()).max(1);
        let passed = (now.as_second() - first.as_second()) / distance;
        let start = first.as_second() + (passed - 1).max(0) * distance;
        let mut last = first;
        let mut at = self.next(Timestamp::from_second(start).ok()?.max(first));
        while let Some(time) = at.filter(|time| *time <= now) {
            last = time;
            at = self.next(time);
        }
        Some(last.max(second))
    }
}

impl Bounds {
    fn plain(range: RangeInclusive<u32>) -> Self {
        Self::named(range, &[])
    }

    fn named(range: RangeInclusive<u32>, names: &'static [&'static str]) -> Self {
        Self {
            first: *range.start(),
            range,
            names,
        }
    }

    fn number(&self, text: &str) -> Option<u32> {
        let name = text.to_lowercase();
        let named = self.names.iter().position(|each| *each == name);
        let number = match named {
            Some(at) => self.first + u32::try_from(at).ok()?,
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
            None => return None,
        };
        self.range.contains(&number).then_some(number)
    }
}

/// Reads a field: parts with commas between them, each `*`, `1`, `1-5`, `*/2`, `1-5/2` or `1/2`.
fn set(field: &str, bounds: &Bounds) -> Option<u64> {
    field
        .split(',')
        .map(|part| run(part, bounds))
        .try_fold(0, |all, run| Some(all | run?))
}

fn run(part: &str, bounds: &Bounds) -> Option<u64> {
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => (range, Some(step.parse::<usize>().ok()?)),
        None => (part, None),
    };
    let (first, last) = match (range, range.split_once('-')) {
        ("*" | "?", _) => (*bounds.range.start(), *bounds.range.end()),
        (_, Some((first, last))) => (bounds.number(first)?, bounds.number(last)?),
        (one, None) => {
            let first = bounds.number(one)?;
            let last = step.map_or(first, |_| *bounds.range.end());
            (first, last)
        }
    };
    if first > last || step == Some(0) {
        return None;
    }
    let numbers = (first..=last).step_by(step.unwrap_or(1));
    Some(numbers.fold(0, |all, number| all | 1 << number))
}

fn has(set: u64, number: i8) -> bool {
    u32::try_from(number).is_ok_and(|number| set >> number & 1 == 1)
}

impl Fields {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let start = after.to_zoned(TimeZone::UTC).datetime();
        let last = start.date().checked_add(Span::new().years(YEARS)).ok()?;
        let mut day = start.date();
        while day <= last {
            if self.is_on(day) {
                let times = self.times(day);
                for time in times {
                    let time = time.to_zoned(TimeZone::UTC).ok()?.timestamp();
                    if time > after {
                        return Some(time);
                    }
                }
            }
            day = day.tomorrow().ok()?;
        }
        None
    }

    fn is_on(&self, day: Date) -> bool {
        let is_day = has(self.days, day.day());
        let is_weekday = has(self.weekdays, day.weekday().to_sunday_zero_offset());
        let is_either = match self.needs_both {
            true => is_day && is_weekday,
            false => is_day || is_weekday,
        };
        has(self.months, day.month()) && is_either
    }

    fn times(&self, day: Date) -> impl Iterator<Item = DateTime> {
        let hours = (0..24).filter(|hour| has(self.hours, *hour));
        hours.flat_map(move |hour| {
            let minutes = (0..60).filter(|minute| has(self.minutes, *minute));
            minutes.map(move |minute| day.at(hour, minute, 0, 0))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a time of the test is well formed")
    }

    #[test]
    fn the_next_time_is_the_first_that_all_fields_admit() {
        for (schedule, after, expected) in [
            ("* * * * *", "2026-03-01T10:00:30Z", "2026-03-01T10:01:00Z"),
            (
                "*/15 * * * *",
                "2026-03-01T10:45:00Z",
                "2026-03-01T11:00:00Z",
            ),
            (
                "5/20 9-17 * * *",
                "2026-03-01T17:45:00Z",
                "2026-03-02T09:05:00Z",
            ),
            ("0 0 29 2 *", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z"),
            (
                "0 12 * * MON-FRI",
                "2026-03-06T12:00:00Z",
                "2026-03-09T12:00:00Z",
            ),
            (
                "0 0 13 * fri",
                "2026-03-01T00:00:00Z",
                "2026-03-06T00:00:00Z",
            ),
            (
                "0 0 1,15 jan,JUL ?",
                "2026-01-15T00:00:00Z",
                "2026-07-01T00:00:00Z",
            ),
            ("@hourly", "2026-12-31T23:00:00Z", "2027-01-01T00:00:00Z"),
            ("@weekly", "2026-03-01T00:00:00Z", "2026-03-08T00:00:00Z"),
            (
                "@every 1m30s",
                "2026-03-01T00:00:00.5Z",
                "2026-03-01T00:01:30Z",
            ),
        ] {
            let parsed = Schedule::parse(schedule).expect("the schedule is well formed");
            assert_eq!(parsed.next(time(after)), Some(time(expected)), "{schedule}");
        }
    }

    #[test]
    fn what_never_comes_has_no_next_time() {
        let schedule = Schedule::parse("0 0 30 2 *").expect("the schedule is well formed");
        assert_eq!(schedule.next(time("2026-03-01T00:00:00Z")), None);
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for text in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* * 0 * *",
            "5-1 * * * *",
            "*/0 * * * *",
            "* * * * 7",
            "+1 * * * *",
            "a * * * *",
            "@often",
            "@every x",
            "1--2 * * * *",
        ] {
            assert_eq!(Schedule::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_last_time_is_found_over_any_distance() {
        let schedule = Schedule::parse("*/10 * * * *").expect("the schedule is well formed");
        let after = time("2026-03-01T00:00:00Z");
        for (now, expected) in [
            ("2026-03-01T00:09:59Z", None),
            ("2026-03-01T00:10:00Z", Some("2026-03-01T00:10:00Z")),
            ("2026-03-01T00:29:00Z", Some("2026-03-01T00:20:00Z")),
            ("2036-03-01T00:01:00Z", Some("2036-03-01T00:00:00Z")),
        ] {
            assert_eq!(schedule.last(after, time(now)), expected.map(time), "{now}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-*/?,0-9a-zA-Z@ ]{0,24}") {
            if let Some(schedule) = Schedule::parse(&text) {
                let next = schedule.next(time("2026-03-01T00:00:00Z"));
                prop_assert!(next.is_none_or(|next| next > time("2026-03-01T00:00:00Z")));
            }
        }
    }
}
