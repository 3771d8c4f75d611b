//! The times between which a certificate is valid.
//!
//! Source: `readASN1Time` of Go's `crypto/x509`, and `golang.org/x/crypto/cryptobyte`.

use jiff::civil::DateTime;

use super::der::{GENERALIZED_TIME, Reader, UTC_TIME};

/// Checks the content of a `Validity`.
pub(super) fn check(content: &[u8]) -> Result<(), String> {
    let mut times = Reader::new(content);
    for _ in 0..2 {
        let time = times.any().ok();
        let (what, is_valid) = match time.map(|time| (time.tag, time.content)) {
            Some((UTC_TIME, text)) => ("malformed UTCTime", is_time(text, 2)),
            Some((GENERALIZED_TIME, text)) => ("malformed GeneralizedTime", is_time(text, 4)),
            _ => ("unsupported time format", false),
        };
        if !is_valid {
            return Err(format!("x509: {what}"));
        }
    }
    Ok(())
}

/// Returns whether a text is a time whose year has some digits; only with two may seconds be left out.
fn is_time(text: &[u8], year: usize) -> bool {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, zone) = text.split_at(count);
    let has_seconds = count == year + 10;
    if !has_seconds && (year != 2 || count != 10) {
        return false;
    }
    let number = |from: usize, to: usize| {
        let digits = digits.get(from..to).unwrap_or(b"0");
        let digits = digits.iter().map(|digit| i16::from(digit - b'0'));
        digits.fold(0, |number, digit| number * 10 + digit)
    };
    let part = |place: usize| i8::try_from(number(year + place, year + place + 2));
    let parts = [0, 2, 4, 6, 8].map(part);
    let [Ok(month), Ok(day), Ok(hour), Ok(minute), Ok(second)] = parts else {
        return false;
    };
    let of_year = match (year, number(0, year)) {
        (2, short @ ..50) => 2000 + short,
        (2, short) => 1900 + short,
        (_, whole) => whole,
    };
    let time = DateTime::new(of_year, month, day, hour, minute, second, 0);
    time.is_ok() && is_zone(zone)
}

/// Returns whether a text is `Z`, or a difference in hours and minutes that is not zero.
fn is_zone(zone: &[u8]) -> bool {
    match zone {
        [b'Z'] => true,
        [b'+' | b'-', digits @ ..] if digits.len() == 4 => {
            let is_number = digits.iter().all(u8::is_ascii_digit);
            is_number
                && digits != b"0000"
                && &digits[..2] <= b"24".as_slice()
                && &digits[2..] < b"60".as_slice()
        }
        _ => false,
    }
}
