//! The schedules of CronJobs, in UTC.
//!
//! The syntax is that of Kubernetes (`github.com/robfig/cron/v3`, `ParseStandard`): no 7 for Sunday, no `L`,
//! `W` or `#`, no names of months among the days of the week, but `1/5`, `?` everywhere and `@every`.
//! `croner` reads another dialect, so fields are checked here and given to it as plain numbers; it finds
//! the times.

use std::ops::RangeInclusive;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The most days that a month ever has.
const LENGTHS: [u16; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// The times at which a CronJob is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Schedule {
    /// An interval, in whole seconds and at least one.
    Every(SignedDuration),
    /// The times that match five fields, of which there is at least one.
    At(Box<Cron>),
}

/// The range and names of a field.
struct Bounds {
    range: RangeInclusive<usize>,
    names: &'static [&'static str],
}

impl Schedule {
    /// Parses five fields, or a descriptor such as `@hourly`.
    ///
    /// `None` if it is neither, or no time ever matches.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let trimmed = text.trim();
        // Other time zones are not supported.
        let in_utc = trimmed.strip_prefix("TZ=UTC ").unwrap_or(trimmed);
        let fields = in_utc.trim_start();
        if let Some(span) = fields.strip_prefix("@every ") {
            let span: SignedDuration = span.trim().parse().ok()?;
            let seconds = (!span.is_negative()).then(|| span.as_secs().max(1))?;
            return Some(Self::Every(SignedDuration::from_secs(seconds)));
        }
        let cron = numbers(match fields {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        })?;
        let parser = CronParser::builder().seconds(Seconds::Disallowed);
        let cron = parser.year(Year::Disallowed).build().parse(&cron).ok()?;
        comes(&cron).then(|| Self::At(Box::new(cron)))
    }

    /// Returns the first time after another.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(span) => {
                // As ConstantDelaySchedule.Next, which counts from whole seconds.
                let whole = Timestamp::from_second(after.as_second()).ok()?;
                whole.checked_add(*span).ok()
            }
            Self::At(cron) => timestamp(cron.find_next_occurrence(&civil(after), false).ok()?),
        }
    }

    /// Returns the last time up to now that is after another.
    pub(super) fn last(&self, after: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(span) => {
                let first = self.next(after).filter(|first| *first <= now)?;
                let intervals = now.duration_since(first).as_secs() / span.as_secs();
                let passed = SignedDuration::from_secs(intervals * span.as_secs());
                first.checked_add(passed).ok()
            }
            Self::At(cron) => {
                let last = cron.find_previous_occurrence(&civil(now), true);
                timestamp(last.ok()?).filter(|last| *last > after)
            }
        }
    }
}

fn civil(time: Timestamp) -> DateTime {
    TimeZone::UTC.to_datetime(time)
}

fn timestamp(civil: DateTime) -> Option<Timestamp> {
    TimeZone::UTC.to_timestamp(civil).ok()
}

/// Returns whether any time matches.
///
/// None is the 30th of February, for which `croner` would search three thousand years.
fn comes(cron: &Cron) -> bool {
    let days = cron.pattern.days.values();
    let mut months = cron.pattern.months.values().into_iter();
    let first = days.first().copied().unwrap_or(u16::MAX);
    // Where a day of the week is given, it is enough that one of the two matches, and such a day comes every week.
    !cron.pattern.is_dow_wildcard() || months.any(|month| first <= LENGTHS[usize::from(month) - 1])
}

/// Writes five fields in numbers, which `croner` reads as Kubernetes does.
///
/// `None` if Kubernetes does not accept the fields.
fn numbers(text: &str) -> Option<String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields[..] else {
        return None;
    };
    let fields = [
        field(minute, &Bounds::plain(0..=59))?,
        field(hour, &Bounds::plain(0..=23))?,
        field(day, &Bounds::plain(1..=31))?,
        field(month, &Bounds::named(1..=12, &MONTHS))?,
        field(weekday, &Bounds::named(0..=6, &DAYS))?,
    ];
    Some(fields.join(" "))
}

/// Writes a field: parts with commas between them, each `*`, `1`, `1-5`, `*/2`, `1-5/2` or `1/2`.
fn field(text: &str, bounds: &Bounds) -> Option<String> {
    let runs = text.split(',').map(|part| run(part, bounds));
    let parts: Vec<String> = runs.collect::<Option<_>>()?;
    // Both fields for days have to match if one of them is a star, otherwise one of the two.
    if parts.iter().any(|part| part == "*") {
        return Some("*".to_owned());
    }
    Some(parts.join(","))
}

fn run(part: &str, bounds: &Bounds) -> Option<String> {
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => (range, Some(step.parse::<usize>().ok()?)),
        None => (part, None),
    };
    let (first, last) = match (range, range.split_once('-')) {
        // As getRange in robfig/cron: a step of more than one takes the meaning of a star away.
        ("*" | "?", _) if step.is_none_or(|step| step == 1) => return Some("*".to_owned()),
        ("*" | "?", _) => (*bounds.range.start(), *bounds.range.end()),
        (_, Some((first, last))) => (bounds.number(first)?, bounds.number(last)?),
        (one, None) => {
            let first = bounds.number(one)?;
            // With a step, one number is the beginning of a range up to the end.
            let last = step.map_or(first, |_| *bounds.range.end());
            (first, last)
        }
    };
    if first > last || step == Some(0) {
        return None;
    }
    let numbers = (first..=last).step_by(step.unwrap_or(1));
    Some(
        numbers
            .map(|number| number.to_string())
            .collect::<Vec<_>>()
            .join(","),
    )
}

impl Bounds {
    fn plain(range: RangeInclusive<usize>) -> Self {
        Self::named(range, &[])
    }

    /// Creates bounds in which the numbers have names, from the first on.
    fn named(range: RangeInclusive<usize>, names: &'static [&'static str]) -> Self {
        Self { range, names }
    }

    fn number(&self, text: &str) -> Option<usize> {
        let named = |name: &&str| name.eq_ignore_ascii_case(text);
        let number = match self.names.iter().position(named) {
            Some(at) => self.range.start() + at,
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
            None => return None,
        };
        self.range.contains(&number).then_some(number)
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
            // A star with a step does not count as a star: one of the two fields is enough.
            (
                "0 0 */10 * MON",
                "2026-03-03T00:00:00Z",
                "2026-03-09T00:00:00Z",
            ),
            (
                "0 0 */1 * MON",
                "2026-03-03T00:00:00Z",
                "2026-03-09T00:00:00Z",
            ),
            (
                "0 0 ? * 2-6/2,0",
                "2026-03-01T00:00:00Z",
                "2026-03-03T00:00:00Z",
            ),
            ("? ? * * *", "2026-03-01T10:00:30Z", "2026-03-01T10:01:00Z"),
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
    fn what_never_comes_is_no_schedule() {
        assert_eq!(Schedule::parse("0 0 30 2 *"), None);
        assert_eq!(Schedule::parse("0 0 31 2,4,6,9,11 *"), None);
        for comes in ["0 0 29 2 *", "0 0 31 2,3 *", "0 0 31 2 0"] {
            assert!(Schedule::parse(comes).is_some(), "{comes}");
        }
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
            // What croner would read.
            "0 0 * * 5-7",
            "0 0 L * *",
            "0 0 15W * *",
            "0 0 * * 5L",
            "0 0 * * 1#2",
            "0 0 1 * +1",
            "0 0 * * jan",
            "0 0 * mon *",
            "/5 * * * *",
            "@EVERY 1h",
            "@every -1h",
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
        let schedule = Schedule::parse("@every 7m").expect("the schedule is well formed");
        for (now, expected) in [
            ("2026-03-01T00:06:59Z", None),
            ("2026-03-01T00:07:00Z", Some("2026-03-01T00:07:00Z")),
            ("2026-03-01T00:34:59Z", Some("2026-03-01T00:28:00Z")),
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
