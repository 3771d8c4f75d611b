//! Quantities in their canonical form.
//!
//! Source: `k8s.io/apimachinery/pkg/api/resource.Quantity`.

use std::cmp::Ordering;
use std::fmt;

/// An amount in billionths, and the family of suffixes it was written with.
///
/// ```
/// use lariat_apimachinery::quantity::Quantity;
///
/// let written = |text| Quantity::parse(text).map(|quantity| quantity.to_string());
/// assert_eq!(written("1024Mi").as_deref(), Some("1Gi"));
/// assert_eq!(written("0.5").as_deref(), Some("500m"));
/// assert_eq!(written("one"), None);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `n u m k M G T P E`
    Decimal,
    /// `Ki Mi Gi Ti Pi Ei`
    Binary,
    /// `e3`
    Exponent,
}

const UNIT: i128 = 1_000_000_000;

/// The largest amount that is told from others; larger ones are read, and count as this one.
// Go counts on without a limit, in numbers of any length.
const MOST: i128 = i128::MAX;

/// The largest amount with a binary suffix.
// `maxAllowed`, which is a cap and no error.
const MOST_BINARY: i128 = i64::MAX as i128 * UNIT;

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

impl Quantity {
    /// Nothing.
    pub(crate) const ZERO: Self = Self {
        nanos: 0,
        form: Form::Decimal,
    };

    /// Returns the amount as a whole number, rounded away from zero.
    // `Quantity.Value`, which is said to round up; `negativeScaleInt64` has the whole truth.
    pub(crate) fn rounded(self) -> i64 {
        in_bounds(self.count_of(UNIT))
    }

    /// Returns how many thousandths the amount has, rounded away from zero.
    // `Quantity.MilliValue`.
    pub(crate) fn thousandths(self) -> i64 {
        in_bounds(self.count_of(UNIT / 1000))
    }

    /// Returns whether the amount, rounded to thousandths away from zero, is a whole number.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "that is what Go does with the number"
    )]
    pub(crate) fn has_whole_thousandths(self) -> bool {
        // Few digits with a large exponent are zero thousandths in Go, as the number overflows.
        if self.nanos.unsigned_abs() >= MOST.unsigned_abs() {
            return true;
        }
        let count = self.count_of(UNIT / 1000);
        // What Go keeps as a number of any length wraps around in `MilliValue`.
        let is_long = canonical_digits(self.nanos) > DIGITS;
        let count = if is_long {
            i128::from(count as i64)
        } else {
            count
        };
        count % 1000 == 0
    }

    /// Returns the amount in thousandths, rounded away from zero, unless it is one already.
    pub(crate) fn in_thousandths(self) -> Option<Self> {
        let part = UNIT / 1000;
        let is_known = self.nanos.unsigned_abs() < MOST.unsigned_abs();
        (is_known && self.nanos % part != 0).then(|| Self {
            nanos: self.count_of(part).saturating_mul(part),
            ..self
        })
    }

    /// Returns how many of some billionths the amount has, rounded away from zero.
    fn count_of(self, nanos: i128) -> i128 {
        let rest = self.nanos % nanos;
        self.nanos / nanos + rest.signum()
    }

    /// Returns how often another amount is in this one.
    pub(crate) fn ratio(self, other: Self) -> f64 {
        self.nanos as f64 / other.nanos as f64
    }

    /// Returns a whole number.
    pub(crate) fn whole_number(count: usize) -> Self {
        let count = i128::try_from(count).unwrap_or(i128::MAX);
        Self {
            nanos: count.saturating_mul(UNIT),
            form: Form::Decimal,
        }
    }

    /// Subtracts another amount; the family of suffixes stays.
    pub(crate) fn minus(self, other: Self) -> Self {
        let nanos = self.nanos.saturating_sub(other.nanos);
        Self { nanos, ..self }
    }

    /// Adds another amount; the family of suffixes stays, but that of nothing.
    pub(crate) fn plus(self, other: Self) -> Self {
        let nanos = self.nanos.saturating_add(other.nanos);
        // `Quantity.Add`: a sum that starts at zero takes the form of its first addend.
        let form = if self.nanos == 0 {
            other.form
        } else {
            self.form
        };
        Self { nanos, form }
    }

    /// Parses a quantity such as `1.5Gi`; `None` if it is invalid.
    ///
    /// ```
    /// use lariat_apimachinery::quantity::Quantity;
    ///
    /// let memory = Quantity::parse("1536Mi").expect("it is valid");
    /// assert_eq!(memory.to_string(), "1536Mi");
    /// assert!(Quantity::parse("1 Gi").is_none());
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::read(text).ok()
    }

    /// Parses a quantity; the error is Go's.
    pub(crate) fn read(text: &str) -> Result<Self, &'static str> {
        let parts = Parts::of(text).ok_or(FORMAT)?;
        let (form, factor, power) = unit(parts.suffix).ok_or(SUFFIX)?;
        let mut nanos = parts.nanos(factor, power).unwrap_or(MOST);
        if form == Form::Binary {
            nanos = nanos.min(MOST_BINARY);
        }
        let nanos = if text.starts_with('-') { -nanos } else { nanos };
        Ok(Self { nanos, form })
    }

    /// Parses a quantity, and returns how it is written again.
    // `ParseQuantity` keeps the text where a short look finds it canonical.
    pub(crate) fn rewritten(text: &str) -> Result<String, &'static str> {
        let quantity = Self::read(text)?;
        let Some(parts) = Parts::of(text) else {
            return Err(FORMAT);
        };
        Ok(if parts.are_kept() {
            text.to_owned()
        } else if quantity.nanos.unsigned_abs() >= MOST.unsigned_abs() {
            let sign = if text.starts_with('-') { "-" } else { "" };
            format!("{sign}{}", parts.canonical())
        } else {
            quantity.to_string()
        })
    }

    /// Returns the amount if it is whole.
    fn whole(self) -> Option<i128> {
        (self.nanos % UNIT == 0).then_some(self.nanos / UNIT)
    }
}

fn in_bounds(count: i128) -> i64 {
    i64::try_from(count).unwrap_or(if count < 0 { i64::MIN } else { i64::MAX })
}

/// The number of digits that Go keeps as an integer.
// `maxInt64Factors`.
const DIGITS: usize = 18;

const FORMAT: &str = "quantities must match the regular expression \
    '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX: &str = "unable to parse quantity's suffix";

/// The parts of a written quantity.
struct Parts<'a> {
    /// The digits before the point, without zeros in front.
    whole: &'a str,
    /// The digits behind it.
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    // `parseQuantityString`, which takes no digits at all for a zero.
    fn of(text: &'a str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        // An exponent has a sign too.
        let power = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let power = power.strip_prefix(['+', '-']).unwrap_or(power);
        digits(power).1.is_empty().then_some(Self {
            whole: whole.trim_start_matches('0'),
            fraction,
            suffix,
        })
    }

    /// Returns the amount in billionths, rounded away from zero.
    fn nanos(&self, factor: i128, power: i32) -> Option<i128> {
        // Digits behind these are smaller than a billionth of anything that fits, so they only round up.
        let counted = 18 + usize::try_from(power.clamp(0, 20)).unwrap_or(0);
        let (counted, smaller) = self.fraction.split_at(self.fraction.len().min(counted));
        let mut amount = 0_i128;
        for digit in self.whole.bytes().chain(counted.bytes()) {
            amount = amount
                .checked_mul(10)?
                .checked_add(i128::from(digit - b'0'))?;
        }
        let amount = amount.checked_mul(factor)?;
        let has_more = smaller.bytes().any(|digit| digit != b'0');
        let places = i64::from(power) + 9 - i64::try_from(counted.len()).ok()?;
        let exponent = u32::try_from(places.unsigned_abs()).unwrap_or(u32::MAX);
        let scale = 10_i128.saturating_pow(exponent);
        if places >= 0 {
            amount.checked_mul(scale)?.checked_add(has_more.into())
        } else {
            let is_rounded = has_more || amount % scale != 0;
            Some(amount / scale + i128::from(is_rounded))
        }
    }

    /// Returns how Go writes an amount of any length again that is not kept as it was written.
    // `infDecAmount.AsCanonicalBytes`, after what `ParseQuantity` rounds.
    fn canonical(&self) -> String {
        let (form, _, power) = unit(self.suffix).unwrap_or((Form::Decimal, 1, 0));
        let mut digits: Vec<u8> = self.whole.bytes().chain(self.fraction.bytes()).collect();
        let mut exponent = i64::from(power) - i64::try_from(self.fraction.len()).unwrap_or(0);
        let surplus = usize::try_from(-9 - exponent)
            .unwrap_or(0)
            .min(digits.len());
        let smaller = digits.split_off(digits.len() - surplus);
        exponent += i64::try_from(surplus).unwrap_or(0);
        if smaller.iter().any(|digit| *digit != b'0') {
            increment(&mut digits);
        }
        while digits.last() == Some(&b'0') {
            digits.pop();
            exponent += 1;
        }
        while exponent % 3 != 0 {
            digits.push(b'0');
            exponent -= 1;
        }
        let start = digits.iter().take_while(|digit| **digit == b'0').count();
        let number = String::from_utf8_lossy(&digits[start..]).into_owned();
        number + &suffix(form, exponent)
    }

    /// Returns whether Go writes the quantity as it was written.
    fn are_kept(&self) -> bool {
        // `Nano`.
        const NANO: i32 = -9;
        let whole = if self.whole.is_empty() {
            "0"
        } else {
            self.whole
        };
        let shifted = format!("{whole}{}", self.fraction);
        match unit(self.suffix) {
            Some((Form::Binary, factor, _)) => {
                // Digits that the suffix stands for, as Go estimates them.
                let taken = factor.ilog2() as usize * 3 / 10;
                let has_low_bits = |value: i128| value & 7 != 0;
                self.fraction.is_empty()
                    && whole.len() + taken < 15
                    && whole.parse().is_ok_and(has_low_bits)
            }
            Some((_, _, power)) => {
                let places = i32::try_from(self.fraction.len()).unwrap_or(i32::MAX);
                let scale = power.saturating_sub(places);
                shifted.len() <= DIGITS
                    && scale >= NANO
                    && scale % 3 == 0
                    && !shifted.ends_with("000")
                    && !shifted.starts_with('0')
            }
            None => false,
        }
    }
}

/// Returns the digits that a text begins with, and the rest.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// Returns the form of a suffix, its factor, and its power of ten.
fn unit(suffix: &str) -> Option<(Form, i128, i32)> {
    // Before the exponents: `E` alone is a suffix, and `E3` is an exponent.
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Form::Decimal, 1, *power));
    }
    if let Some(power) = BINARY.iter().position(|name| *name == suffix) {
        return Some((Form::Binary, 1 << (10 * power), 0));
    }
    let power = suffix.strip_prefix(['e', 'E'])?.parse::<i64>().ok()?;
    Some((Form::Exponent, 1, wrapped(power)))
}

/// Converts an exponent as Go does, which cuts it off.
#[allow(
    clippy::cast_possible_truncation,
    reason = "that is what Go does with the number"
)]
fn wrapped(power: i64) -> i32 {
    power as i32
}

/// Adds one to a number in digits.
fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit != b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
}

/// Returns the suffix for a power of ten that is a multiple of three.
///
/// Go has no decimal one for large powers, and writes none, which changes the amount.
fn suffix(form: Form, power: i64) -> String {
    if form == Form::Exponent {
        return match power {
            0 => String::new(),
            power => format!("e{power}"),
        };
    }
    let known = DECIMAL.iter().find(|(_, each)| i64::from(*each) == power);
    known.map_or_else(String::new, |(name, _)| (*name).to_owned())
}

/// Returns how many digits a number has without the zeros at its end.
fn canonical_digits(number: i128) -> usize {
    let digits = number.unsigned_abs().to_string();
    digits.trim_end_matches('0').len()
}

/// Amounts are equal however they are written.
impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        // Small and fractional amounts are decimal, however they were written.
        if let (Form::Binary, Some(mut whole)) = (self.form, self.whole())
            // `CanonicalizeBytes` falls back to the decimal form for these.
            && whole.abs() >= 1024
        {
            let mut power = 0;
            while whole % 1024 == 0 && power < BINARY.len() - 1 {
                whole /= 1024;
                power += 1;
            }
            return write!(f, "{whole}{}", BINARY[power]);
        }
        let (mut number, mut power) = (self.nanos, -9);
        // The largest suffix that keeps the number whole, which is what "canonical" means.
        while number % 1000 == 0 {
            number /= 1000;
            power += 3;
        }
        write!(f, "{number}{}", suffix(self.form, power))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_have_one_form() {
        for (text, canonical) in [
            ("1", "1"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("100m", "100m"),
            ("1500m", "1500m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("128974848", "128974848"),
            ("129e6", "129e6"),
            ("129M", "129M"),
            ("1000k", "1M"),
            ("0Gi", "0"),
            ("-1", "-1"),
            ("0.1Ki", "102400m"),
            ("0.0000000001", "1n"),
            ("0.0000000001k", "100n"),
            ("0.1234567891k", "123456789100n"),
            ("0.1234567891Gi", "132560717913417319n"),
            ("-", "0"),
            (".", "0"),
            ("m", "0"),
        ] {
            let parsed = Quantity::parse(text).map(|quantity| quantity.to_string());
            assert_eq!(parsed.as_deref(), Some(canonical), "{text}");
        }
        for text in ["", "x", "1x", "1.2.3", "1e", "1 Gi"] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_are_written_as_by_a_genuine_server() {
        for (text, written) in [
            ("1.500", "1.500"),
            ("007", "007"),
            ("+1", "+1"),
            ("5.", "5."),
            ("1E3", "1E3"),
            ("1e0", "1e0"),
            ("100Ki", "100Ki"),
            ("8Ki", "8Ki"),
            ("1.0Gi", "1Gi"),
            ("1.000", "1"),
            ("0.10", "100m"),
            ("00", "0"),
            ("+0", "0"),
            ("1000k", "1M"),
            ("15e-1", "1500e-3"),
            ("1024Mi", "1Gi"),
            ("1e+3", "1e+3"),
            ("1e25", "10e24"),
            ("1e30", "1e30"),
            ("1.5e30", "1500e27"),
            ("123e400", "1230e399"),
            ("-123e400", "-1230e399"),
            ("1e4294967297", "10"),
            ("16Ei", "9223372036854775807"),
            ("-16Ei", "-9223372036854775807"),
            (
                "1000000000000000000000000000000000Ki",
                "9223372036854775807",
            ),
            ("12345678901234567890k", "12345678901234567890k"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            ("100000000000000000000", "100E"),
            ("1000E", "1"),
            ("9999999999999999999999999999999.9999999999", "10"),
        ] {
            assert_eq!(Quantity::rewritten(text).as_deref(), Ok(written), "{text}");
        }
        for text in ["1e", "1ee", "1K", "--1", "1Mi1", "e"] {
            assert_eq!(Quantity::rewritten(text), Err(SUFFIX), "{text}");
        }
        for text in ["", "1Kib", "1e3e", "1..", "0x", "- 1"] {
            assert_eq!(Quantity::rewritten(text), Err(FORMAT), "{text}");
        }
    }

    #[test]
    fn amounts_are_rounded_away_from_zero() {
        for (text, whole, is_whole) in [
            ("100m", 1, false),
            ("-100m", -1, false),
            ("-1", -1, true),
            ("0", 0, true),
            ("1.0000001", 2, false),
            ("0.9999999", 1, true),
            ("-0.9999999", -1, true),
        ] {
            let quantity = Quantity::parse(text).expect("it is valid");
            let found = (quantity.rounded(), quantity.has_whole_thousandths());
            assert_eq!(found, (whole, is_whole), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_one_form_is_read_as_the_same_amount(text in "[+-]?[0-9]{1,30}(\\.[0-9]{0,12})?(n|u|m|k|M|G|Ki|Mi|Gi|Ei|e3|e-3)?") {
            if let Some(quantity) = Quantity::parse(&text) {
                let again = Quantity::parse(&quantity.to_string()).expect("the form is valid");
                // Go has no suffix for what is more, and neither have we.
                let is_shown = quantity.nanos.abs() < 10_i128.pow(30);
                prop_assert!(!is_shown || again.nanos == quantity.nanos);
                prop_assert!(!is_shown || again.to_string() == quantity.to_string());
            }
        }
    }
}
