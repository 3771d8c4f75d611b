//! Times as Go's `time.Parse` reads them, with its errors.
//!
//! Source: `parse` in Go's `time`, by the two layouts that Kubernetes has.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::Offset;

const RFC3339: &str = "2006-01-02T15:04:05Z07:00";
const RFC3339_MICRO: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Go's time without value, the first second of the year 1.
pub const ZERO: Timestamp = Timestamp::constant(-62_135_596_800, 0);

/// Reads a time by the layout of `metav1.Time`.
///
/// ```
/// use lariat_apimachinery::go_time::rfc3339;
///
/// let time = rfc3339("2020-01-01T1:02:03,5+01:00")?;
/// assert_eq!(time.to_string(), "2020-01-01T00:02:03.5Z");
/// let error = rfc3339("2020-01-01T01:60:00Z").unwrap_err();
/// assert_eq!(error, "parsing time \"2020-01-01T01:60:00Z\": minute out of range");
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
///
/// The text of Go's error.
pub fn rfc3339(text: &str) -> Result<Timestamp, String> {
    parse(text, RFC3339)
}

/// Reads a time by the layout of `metav1.MicroTime`.
///
/// # Errors
///
/// The text of Go's error.
///
/// ```
/// use lariat_apimachinery::go_time::rfc3339_micro;
///
/// assert!(rfc3339_micro("2026-01-01T00:00:00.000001Z").is_ok());
/// assert!(rfc3339_micro("2026-01-01").is_err());
/// ```
pub fn rfc3339_micro(text: &str) -> Result<Timestamp, String> {
    parse(text, RFC3339_MICRO)
}

fn parse(text: &str, layout: &str) -> Result<Timestamp, String> {
    let mut reader = Reader { rest: text };
    let read = reader.time(layout == RFC3339_MICRO);
    read.map_err(|fault| {
        let (text, rest) = (quoted(text), quoted(reader.rest));
        match fault {
            Fault::Unread(element) => {
                format!("parsing time {text} as {layout:?}: cannot parse {rest} as {element:?}")
            }
            Fault::OutOfRange(what) => format!("parsing time {text}: {what} out of range"),
            Fault::Extra => format!("parsing time {text}: extra text: {rest}"),
        }
    })
}

/// Quotes a text as Go's package `time` does, byte by byte.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=0x7f => quoted.push(char::from(byte)),
            other => quoted += &format!("\\x{other:02x}"),
        }
    }
    quoted.push('"');
    quoted
}

enum Fault {
    /// This element of the layout is not what comes next.
    Unread(&'static str),
    OutOfRange(&'static str),
    Extra,
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn time(&mut self, has_micros: bool) -> Result<Timestamp, Fault> {
        let year = self.year()?;
        self.skip("-")?;
        let month = self.number("01", true)?;
        if !(1..=12).contains(&month) {
            return Err(Fault::OutOfRange("month"));
        }
        self.skip("-")?;
        // Whether the month has the day is known in the end.
        let day = self.number("02", true)?;
        self.skip("T")?;
        // An hour may have one digit, although the layout has two.
        let hour = self.below(24, "15", false, "hour")?;
        self.skip(":")?;
        let minute = self.below(60, "04", true, "minute")?;
        self.skip(":")?;
        let second = self.below(60, "05", true, "second")?;
        let nanosecond = if has_micros {
            self.micros()? * 1000
        } else {
            self.fraction()
        };
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(Fault::Extra);
        }
        let date = Date::new(year, month, day).map_err(|_| Fault::OutOfRange("day"))?;
        let time = Time::new(hour, minute, second, nanosecond);
        // All parts are in range.
        let time = date.to_datetime(time.unwrap_or_default());
        let shifted = Offset::UTC.to_timestamp(time).map(|utc| {
            let offset = jiff::SignedDuration::from_secs(offset);
            utc.checked_sub(offset).unwrap_or(Timestamp::MAX)
        });
        Ok(shifted.unwrap_or(Timestamp::MAX))
    }

    fn skip(&mut self, separator: &'static str) -> Result<(), Fault> {
        let rest = self.rest.strip_prefix(separator);
        self.rest = rest.ok_or(Fault::Unread(separator))?;
        Ok(())
    }

    fn year(&mut self) -> Result<i16, Fault> {
        let digits = self.rest.get(..4).and_then(all_digits);
        let year = digits.ok_or(Fault::Unread("2006"))?;
        self.rest = &self.rest[4..];
        Ok(year)
    }

    /// Reads a number of two digits, or of one if that need not be.
    ///
    /// Source: `getnum`.
    fn number(&mut self, element: &'static str, is_fixed: bool) -> Result<i8, Fault> {
        let digits = self.rest.bytes().take(2);
        let count = digits.take_while(u8::is_ascii_digit).count();
        if count == 0 || (is_fixed && count == 1) {
            return Err(Fault::Unread(element));
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(all_digits(digits).unwrap_or_default())
    }

    fn below(
        &mut self,
        end: i8,
        element: &'static str,
        is_fixed: bool,
        what: &'static str,
    ) -> Result<i8, Fault> {
        let number = self.number(element, is_fixed)?;
        if number < end {
            Ok(number)
        } else {
            Err(Fault::OutOfRange(what))
        }
    }

    /// Reads the fraction that may follow the seconds, and returns it in nanoseconds.
    fn fraction(&mut self) -> i32 {
        let Some(rest) = self.rest.strip_prefix(['.', ',']) else {
            return 0;
        };
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return 0;
        }
        let (digits, rest) = rest.split_at(count);
        self.rest = rest;
        let digits = &digits[..count.min(9)];
        let padded = format!("{digits:0<9}");
        padded.parse().unwrap_or_default()
    }

    fn micros(&mut self) -> Result<i32, Fault> {
        let fault = Fault::Unread(".000000");
        let digits = self.rest.strip_prefix(['.', ',']);
        let digits = digits.and_then(|rest| rest.get(..6)).and_then(all_digits);
        let micros = digits.ok_or(fault)?;
        self.rest = &self.rest[7..];
        Ok(micros)
    }

    /// Reads the offset from UTC, in seconds.
    fn offset(&mut self) -> Result<i64, Fault> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let fault = || Fault::Unread("Z07:00");
        let text = self.rest.get(..6).ok_or_else(fault)?;
        let sign = match text.as_bytes() {
            [b'+', _, _, b':', _, _] => 1,
            [b'-', _, _, b':', _, _] => -1,
            _ => return Err(fault()),
        };
        let part = |at: usize| text.get(at..at + 2).and_then(all_digits::<i64>);
        let (hours, minutes) = (part(1), part(4));
        let hours = hours.ok_or_else(fault)?;
        let minutes = minutes.ok_or_else(fault)?;
        // Offsets of exactly 24 hours or 60 minutes are allowed.
        for (number, most, what) in [
            (hours, 24, "time zone offset hour"),
            (minutes, 60, "time zone offset minute"),
        ] {
            if number > most {
                return Err(Fault::OutOfRange(what));
            }
        }
        self.rest = &self.rest[6..];
        Ok(sign * (hours * 3600 + minutes * 60))
    }
}

/// Reads a number that has no sign.
fn all_digits<N: FromStr>(text: &str) -> Option<N> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
            ("2020-01-01T1:00:00Z", "2020-01-01T01:00:00Z"),
            ("2020-01-01T00:00:00,5Z", "2020-01-01T00:00:00.5Z"),
            (
                "2020-01-01T00:00:00.1234567890123Z",
                "2020-01-01T00:00:00.123456789Z",
            ),
            ("2020-01-02T00:00:00+24:00", "2020-01-01T00:00:00Z"),
            ("2020-01-01T00:00:00-01:30", "2020-01-01T01:30:00Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
        ] {
            let expected: Timestamp = expected.parse().unwrap();
            assert_eq!(rfc3339(text), Ok(expected), "{text}");
        }
        let micro = rfc3339_micro("2020-01-01T00:00:00.123456+01:00").unwrap();
        assert_eq!(micro.to_string(), "2019-12-31T23:00:00.123456Z");
        assert_eq!(rfc3339("9999-12-31T23:59:59-05:00"), Ok(Timestamp::MAX));
    }

    #[test]
    fn errors_are_those_of_go() {
        let layout = "as \"2006-01-02T15:04:05Z07:00\": cannot parse";
        for (text, expected) in [
            ("", format!("{layout} \"\" as \"2006\"")),
            ("nu\"ll", format!("{layout} \"nu\\\"ll\" as \"2006\"")),
            ("null", format!("{layout} \"null\" as \"2006\"")),
            (
                "2020-01-01 00:00:00Z",
                format!("{layout} \" 00:00:00Z\" as \"T\""),
            ),
            (
                "2020-01-01T00:00:00+01",
                format!("{layout} \"+01\" as \"Z07:00\""),
            ),
            ("2020-01-01T00:00Z", format!("{layout} \"Z\" as \":\"")),
        ] {
            assert_eq!(
                rfc3339(text),
                Err(format!("parsing time {text:?} {expected}"))
            );
        }
        let error = rfc3339("2020é").unwrap_err();
        assert!(
            error.ends_with(r#"cannot parse "\xc3\xa9" as "-""#),
            "{error}"
        );
        for (text, expected) in [
            ("2020-13-01T00:00:00Z", "month out of range"),
            ("2020-02-30T00:00:00Z", "day out of range"),
            ("2020-01-01T24:00:00Z", "hour out of range"),
            ("2020-01-01T00:00:60Z", "second out of range"),
            ("2020-01-01T00:00:00Z[UTC]", "extra text: \"[UTC]\""),
        ] {
            assert_eq!(
                rfc3339(text),
                Err(format!("parsing time {text:?}: {expected}"))
            );
        }
        let text = "2020-01-01T00:00:00Z";
        let expected = format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\""
        );
        assert_eq!(rfc3339_micro(text), Err(expected));
    }
}
