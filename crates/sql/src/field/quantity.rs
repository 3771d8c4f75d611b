//! Kubernetes quantities, such as `500m` or `2Gi`, which compare exactly.

use std::fmt;
use std::str::FromStr;

use super::error::ValueError;

/// The parts of a unit: quantities are exact to a billionth.
const NANO: i128 = 1_000_000_000;

/// A Kubernetes quantity, exact to a billionth.
///
/// Quantities compare by amount, so `1Gi` equals `1024Mi`. A smaller fraction than a billionth is rounded up, away from
/// zero, as `resource.Quantity` of Kubernetes does.
///
/// ```
/// use lariat::sql::Quantity;
///
/// let half: Quantity = "500m".parse()?;
/// assert!(half < "1".parse()?);
/// assert_eq!(half, "0.5".parse()?);
/// # Ok::<(), lariat::sql::ValueError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nanos: i128,
}

impl Quantity {
    /// Returns bytes that compare as the quantities do.
    pub(crate) fn to_key(self) -> [u8; 16] {
        // Two's complement with the sign flipped: negative amounts come first.
        (self.nanos as u128 ^ (1 << 127)).to_be_bytes()
    }

    pub(crate) fn from_key(key: [u8; 16]) -> Self {
        Self {
            nanos: (u128::from_be_bytes(key) ^ (1 << 127)) as i128,
        }
    }
}

impl FromStr for Quantity {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let nanos = parse(text).ok_or(ValueError::new(text, "a quantity such as 500m or 2Gi"))?;
        Ok(Self { nanos })
    }
}

/// Returns billionths; `None` if the text is not a quantity, or is too large.
fn parse(text: &str) -> Option<i128> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let mut digits: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        digits = digits
            .checked_mul(10)?
            .checked_add(i128::from(digit - b'0'))?;
    }
    let fraction = u32::try_from(fraction.len()).ok()?;
    Some(sign * scaled(digits, fraction, suffix)?)
}

/// Returns `digits / 10^fraction` times the suffix, in billionths, rounded up.
fn scaled(digits: i128, fraction: u32, suffix: &str) -> Option<i128> {
    let binary = |power| Some((1024_i128.checked_pow(power)?, 0));
    let (factor, exponent) = match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        // `E` alone is the suffix exa; with a number behind it, it begins an exponent.
        "E" => (1, 18),
        "Ki" => binary(1)?,
        "Mi" => binary(2)?,
        "Gi" => binary(3)?,
        "Ti" => binary(4)?,
        "Pi" => binary(5)?,
        "Ei" => binary(6)?,
        _ => (1, suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?),
    };
    let digits = digits.checked_mul(factor)?;
    let exponent = i64::from(exponent) + 9 - i64::from(fraction);
    // A whole number of billionths, or an overflow.
    if exponent >= 0 {
        let power = 10_i128.checked_pow(u32::try_from(exponent).ok()?);
        return match power {
            // Zero fits with any exponent, even if the power itself overflows.
            _ if digits == 0 => Some(0),
            power => digits.checked_mul(power?),
        };
    }
    let power = 10_i128.checked_pow(u32::try_from(-exponent).ok()?);
    // The divisor is larger than any number, so the result is rounded up to a billionth, or is zero.
    let Some(power) = power else {
        return Some(i128::from(digits > 0));
    };
    Some(digits / power + i128::from(digits % power > 0))
}

impl fmt::Display for Quantity {
    /// Writes the amount in its shortest form: `500m`, `2`, `1073741824`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scales = [(NANO, ""), (1_000_000, "m"), (1_000, "u"), (1, "n")];
        let fits = scales.iter().find(|(unit, _)| self.nanos % unit == 0);
        let (unit, suffix) = fits.copied().unwrap_or((1, "n"));
        write!(f, "{}{suffix}", self.nanos / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_compare_whatever_their_form() {
        for (one, other) in [
            ("1Gi", "1024Mi"),
            ("0.5", "500m"),
            ("1e3", "1k"),
            ("1E3", "1000"),
            (".5", "500m"),
            ("5.", "5"),
            ("+2", "2"),
            ("1.5Ki", "1536"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            ("0e400", "0"),
            ("1e-400", "1n"),
            ("2E", "2e18"),
        ] {
            let parsed = |text: &str| text.parse::<Quantity>().unwrap();
            assert_eq!(parsed(one), parsed(other), "{one} {other}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in [
            "", "-", ".", "1.2.3", "1 Gi", "Gi", "1GB", "0x10", "1e", "1e400", "१",
        ] {
            assert!(text.parse::<Quantity>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn keys_compare_as_quantities_do() {
        let all = ["-1E", "-2", "-1n", "0", "1n", "1m", "1", "1k", "1Ki", "8E"]
            .map(|text| text.parse::<Quantity>().unwrap());
        assert!(all.windows(2).all(|two| two[0] < two[1]));
        assert!(all.windows(2).all(|two| two[0].to_key() < two[1].to_key()));
        assert!(all.iter().all(|it| Quantity::from_key(it.to_key()) == *it));
    }

    #[test]
    fn a_quantity_is_shown_in_few_digits() {
        for (text, shown) in [
            ("0.5", "500m"),
            ("2.0", "2"),
            ("1Ki", "1024"),
            ("1n", "1n"),
            ("-1.5", "-1500m"),
        ] {
            assert_eq!(text.parse::<Quantity>().unwrap().to_string(), shown);
        }
    }
}
