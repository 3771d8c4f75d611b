//! Durations as Go's `time.ParseDuration` reads them, with its errors.

use crate::go_time::quoted;

/// Checks a duration such as `1h30m`.
///
/// ```
/// use lariat_apimachinery::go_duration::check;
///
/// assert_eq!(check("1h30m"), Ok(()));
/// assert_eq!(check("5"), Err("time: missing unit in duration \"5\"".to_owned()));
/// ```
///
/// # Errors
///
/// The text of Go's error.
pub fn check(text: &str) -> Result<(), String> {
    let invalid = || format!("time: invalid duration {}", quoted(text));
    let is_negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    let mut total = 0_u64;
    let mut is_empty = true;
    while !rest.is_empty() {
        is_empty = false;
        let (whole, behind) = digits(rest);
        let (fraction, behind) = behind.strip_prefix('.').map_or(("", behind), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let ends = |character: char| character == '.' || character.is_ascii_digit();
        let (unit, behind) = behind.split_at(behind.find(ends).unwrap_or(behind.len()));
        rest = behind;
        let nanoseconds = match unit {
            "" => return Err(format!("time: missing unit in duration {}", quoted(text))),
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            unit => {
                let (unit, text) = (quoted(unit), quoted(text));
                return Err(format!("time: unknown unit {unit} in duration {text}"));
            }
        };
        total = sum(total, whole, fraction, nanoseconds).ok_or_else(invalid)?;
    }
    // One more than the largest number is the smallest one.
    let most = i64::MAX.unsigned_abs() + u64::from(is_negative);
    if is_empty || total > most {
        return Err(invalid());
    }
    Ok(())
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|character: char| !character.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// Adds an amount of a unit; `None` if that is too much.
fn sum(total: u64, whole: &str, fraction: &str, unit: u64) -> Option<u64> {
    const MOST: u64 = 1 << 63;
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let amount = whole.checked_mul(unit)?;
    // Only the first digits count: no unit has more than 10^13 parts.
    let (mut parts, mut part) = (0, unit);
    for digit in fraction.bytes().take(14) {
        parts += u64::from(digit - b'0') * part / 10;
        part /= 10;
    }
    let sum = total.checked_add(amount)?.checked_add(parts)?;
    Some(sum).filter(|sum| *sum <= MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for valid in [
            "0",
            "-0",
            "+5s",
            "1.s",
            ".5s",
            "1h2m3.5s",
            "1µs",
            "-9223372036854775808ns",
        ] {
            assert_eq!(check(valid), Ok(()), "{valid}");
        }
        for (text, expected) in [
            ("x", r#"time: invalid duration "x""#),
            ("-", r#"time: invalid duration "-""#),
            ("5", r#"time: missing unit in duration "5""#),
            ("1h1", r#"time: missing unit in duration "1h1""#),
            ("1.5.s", r#"time: missing unit in duration "1.5.s""#),
            ("1y", r#"time: unknown unit "y" in duration "1y""#),
            ("1h-1m", r#"time: unknown unit "h-" in duration "1h-1m""#),
            (".s", r#"time: invalid duration ".s""#),
            ("99999999999h", r#"time: invalid duration "99999999999h""#),
            (
                "9223372036854775808ns",
                r#"time: invalid duration "9223372036854775808ns""#,
            ),
            ("\"é", r#"time: invalid duration "\"\xc3\xa9""#),
        ] {
            assert_eq!(check(text), Err(expected.to_owned()));
        }
    }
}
