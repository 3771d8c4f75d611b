//! Schedules in the language of cron.
//!
//! Source: `parser.go` in `github.com/robfig/cron/v3`.

use std::num::IntErrorKind;

use crate::go_duration;

struct Bounds {
    least: u64,
    most: u64,
    names: &'static [&'static str],
}

const fn bounds(least: u64, most: u64, names: &'static [&'static str]) -> Bounds {
    Bounds { least, most, names }
}

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [Bounds; 5] = [
    bounds(0, 59, &[]),
    bounds(0, 23, &[]),
    bounds(1, 31, &[]),
    bounds(1, 12, MONTHS),
    bounds(0, 6, DAYS),
];

// All but `@every`, which has a duration.
const NAMED: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// Checks a schedule.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    if schedule.starts_with('@') {
        return check_named(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let found = fields.len();
        let fields = fields.join(" ");
        return Err(format!(
            "expected exactly 5 fields, found {found}: [{fields}]"
        ));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        // The Go parser splits by `FieldsFunc`, which skips empty parts.
        for range in field.split(',').filter(|range| !range.is_empty()) {
            check_range(range, bounds)?;
        }
    }
    Ok(())
}

fn check_named(schedule: &str) -> Result<(), String> {
    if NAMED.contains(&schedule) {
        return Ok(());
    }
    let Some(span) = schedule.strip_prefix("@every ") else {
        return Err(format!("unrecognized descriptor: {schedule}"));
    };
    let wrong = |error| format!("failed to parse duration {schedule}: {error}");
    go_duration::check(span).map_err(wrong)
}

fn check_range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        // What follows a star is not looked at, so `*-5` is every value.
        ["*" | "?", ..] => (bounds.least, bounds.most),
        [single] => {
            let number = number_or_name(single, bounds)?;
            (number, number)
        }
        [first, last] => (
            number_or_name(first, bounds)?,
            number_or_name(last, bounds)?,
        ),
        [first, ..] => {
            number_or_name(first, bounds)?;
            return Err(format!("too many hyphens: {text}"));
        }
        [] => return Ok(()),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            // `3/5` means from 3 to the end; `3-9/5` has an end of its own.
            if ends.len() == 1 {
                end = bounds.most;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    let Bounds { least, most, .. } = bounds;
    Err(if start < *least {
        format!("beginning of range ({start}) below minimum ({least}): {text}")
    } else if end > *most {
        format!("end of range ({end}) above maximum ({most}): {text}")
    } else if start > end {
        format!("beginning of range ({start}) beyond end of range ({end}): {text}")
    } else if step == 0 {
        format!("step of range should be a positive number: {text}")
    } else {
        return Ok(());
    })
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    // Names count from the lower bound: January is 1 and Sunday is 0.
    let mut named = (bounds.least..).zip(bounds.names);
    match named.find(|(_, name)| **name == lower) {
        Some((number, _)) => Ok(number),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Err(error) => {
            let reason = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Err(format!(
                "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {reason}"
            ))
        }
        Ok(number) => u64::try_from(number)
            .map_err(|_| format!("negative number ({number}) not allowed: {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_have_five_fields_within_bounds() {
        for (schedule, expected) in [
            ("*/5 0-12/2 1,15 JAN-mar ?", Ok(())),
            ("@every 1h30m", Ok(())),
            ("@hourly", Ok(())),
            (
                "* * * *",
                Err("expected exactly 5 fields, found 4: [* * * *]"),
            ),
            (
                "60 * * * *",
                Err("end of range (60) above maximum (59): 60"),
            ),
            (
                "* * 0 * *",
                Err("beginning of range (0) below minimum (1): 0"),
            ),
            (
                "5-3 * * * *",
                Err("beginning of range (5) beyond end of range (3): 5-3"),
            ),
            (
                "*/0 * * * *",
                Err("step of range should be a positive number: */0"),
            ),
            ("1-2-3 * * * *", Err("too many hyphens: 1-2-3")),
            (
                "x * * * *",
                Err("failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ),
            ("@never", Err("unrecognized descriptor: @never")),
        ] {
            assert_eq!(
                check(schedule),
                expected.map_err(str::to_owned),
                "{schedule}"
            );
        }
    }
}
