//! Values of fields, and their types.

use std::cmp::Ordering;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value as Json;

use super::error::ValueError;
use super::quantity::Quantity;

/// The type of a field: which values it has, and how they compare.
///
/// ```
/// use lariat::sql::FieldType;
///
/// let small = FieldType::Quantity.parse("500m")?;
/// let large = FieldType::Quantity.parse("2Gi")?;
/// assert!(small < large);
/// assert!(FieldType::Natural.parse("pod-9")? < FieldType::Natural.parse("pod-10")?);
/// # Ok::<(), lariat::sql::ValueError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldType {
    /// Texts, compared by their bytes.
    ///
    /// JSON numbers and booleans are converted to text.
    Text,
    /// Texts with numbers in them: `pod-9` comes before `pod-10`.
    ///
    /// Case counts only between texts that are equal otherwise.
    Natural,
    /// Whole numbers of 64 bits.
    Integer,
    /// Floating-point numbers of 64 bits.
    Real,
    /// `false` comes before `true`.
    Boolean,
    /// Amounts such as `500m` and `2Gi`; see [`Quantity`].
    Quantity,
    /// RFC 3339 timestamps, with microsecond precision.
    Time,
    /// IP addresses, IPv4 before IPv6.
    ///
    /// IPv4 addresses that are written as IPv6 count as IPv4.
    Ip,
}

impl FieldType {
    /// Describes texts of the type, for errors.
    fn form(self) -> &'static str {
        match self {
            Self::Text | Self::Natural => "a text",
            Self::Integer => "a whole number of 64 bits",
            Self::Real => "a number",
            Self::Boolean => "true or false",
            Self::Quantity => "a quantity such as 500m or 2Gi",
            Self::Time => "a time such as 2026-01-31T12:00:00Z",
            Self::Ip => "an IP address",
        }
    }

    /// Returns whether values are texts, in which a part can be searched for.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Natural)
    }

    /// Reads a value from text.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a value of the type.
    pub fn parse(self, text: &str) -> Result<Value, ValueError> {
        let failed = || ValueError::new(text, self.form());
        Ok(match self {
            Self::Text => Value::Text(text.into()),
            Self::Natural => Value::Natural(text.into()),
            Self::Integer => Value::Integer(text.parse().map_err(|_| failed())?),
            Self::Real => {
                let number: f64 = text.parse().map_err(|_| failed())?;
                Value::real(number).ok_or_else(failed)?
            }
            Self::Boolean => Value::Boolean(text.parse().map_err(|_| failed())?),
            Self::Quantity => Value::Quantity(text.parse()?),
            Self::Time => {
                let time: Timestamp = text.parse().map_err(|_| failed())?;
                Value::Time(time.as_microsecond())
            }
            Self::Ip => {
                let address: IpAddr = text.parse().map_err(|_| failed())?;
                // Otherwise `::ffff:10.0.0.1` and `10.0.0.1` would be two addresses.
                Value::Ip(address.to_canonical())
            }
        })
    }

    /// Reads a value from JSON, as it is in an object.
    ///
    /// # Errors
    ///
    /// Fails if the JSON is not a value of the type.
    pub(crate) fn read(self, json: &Json) -> Result<Value, &'static str> {
        let wrong = Err("it has another type");
        match (self, json) {
            (Self::Integer, Json::Number(number)) => match number.as_i64() {
                Some(number) => Ok(Value::Integer(number)),
                None => Err("it is not a whole number of 64 bits"),
            },
            (Self::Real, Json::Number(number)) => {
                let number = number.as_f64().and_then(Value::real);
                number.ok_or("it is too large")
            }
            (Self::Boolean, Json::Bool(is)) => Ok(Value::Boolean(*is)),
            (_, Json::String(text)) => self.parse(text).map_err(|_| "it is not of its type"),
            // A quantity can be a JSON number, as in `cpu: 1`.
            (Self::Text | Self::Natural | Self::Quantity, Json::Number(number)) => self
                .parse(&number.to_string())
                .map_err(|_| "it is not of its type"),
            (Self::Text | Self::Natural, Json::Bool(is)) => self
                .parse(if *is { "true" } else { "false" })
                .map_err(|_| "it is not of its type"),
            _ => wrong,
        }
    }
}

/// A value of a field.
///
/// Values of one field have one type and compare as its [`FieldType`] defines. `Display` writes them as in a filter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text.
    Text(Arc<str>),
    /// A text that is ordered by the numbers in it.
    Natural(Arc<str>),
    /// A whole number.
    Integer(i64),
    /// A number; never NaN, infinite or `-0.0`.
    Real(f64),
    /// True or false.
    Boolean(bool),
    /// An amount.
    Quantity(Quantity),
    /// Microseconds since 1970.
    Time(i64),
    /// An address, in its canonical form.
    Ip(IpAddr),
}

impl Eq for Value {}

impl Value {
    /// Creates a number, normalising `-0.0`; `None` if it is not finite.
    fn real(number: f64) -> Option<Self> {
        // Adding zero turns `-0.0` into `0.0`, which a database treats as equal.
        number.is_finite().then_some(Self::Real(number + 0.0))
    }

    /// Returns the text of a text value.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Natural(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the position of the type in a fixed order of types.
    fn rank(&self) -> u8 {
        match self {
            Self::Text(_) => 0,
            Self::Natural(_) => 1,
            Self::Integer(_) => 2,
            Self::Real(_) => 3,
            Self::Boolean(_) => 4,
            Self::Quantity(_) => 5,
            Self::Time(_) => 6,
            Self::Ip(_) => 7,
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    /// Compares values of one type; those of different types have some fixed order.
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Natural(one), Self::Natural(other)) => natural_key(one).cmp(&natural_key(other)),
            (Self::Integer(one), Self::Integer(other)) | (Self::Time(one), Self::Time(other)) => {
                one.cmp(other)
            }
            (Self::Real(one), Self::Real(other)) => one.total_cmp(other),
            (Self::Boolean(one), Self::Boolean(other)) => one.cmp(other),
            (Self::Quantity(one), Self::Quantity(other)) => one.cmp(other),
            (Self::Ip(one), Self::Ip(other)) => one.cmp(other),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) | Self::Natural(text) => f.write_str(text),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Real(number) => write!(f, "{number}"),
            Self::Boolean(is) => write!(f, "{is}"),
            Self::Quantity(amount) => write!(f, "{amount}"),
            Self::Time(micros) => match Timestamp::from_microsecond(*micros) {
                Ok(time) => write!(f, "{time}"),
                Err(_) => write!(f, "{micros} µs"),
            },
            Self::Ip(address) => write!(f, "{address}"),
        }
    }
}

/// Returns bytes that compare as natural texts do.
///
/// A run of digits is written as its length without leading zeros and then the digits, ASCII letters in lower case. The
/// original text follows, so that only equal texts have equal keys.
pub(crate) fn natural_key(text: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(2 * text.len() + 2);
    let mut rest = text.as_bytes();
    while let Some(first) = rest.first() {
        if first.is_ascii_digit() {
            let end = rest.iter().position(|byte| !byte.is_ascii_digit());
            let (digits, after) = rest.split_at(end.unwrap_or(rest.len()));
            let zeros = digits.iter().position(|digit| *digit != b'0');
            let digits = &digits[zeros.unwrap_or(digits.len() - 1)..];
            // Digits come before letters, as in the text; a number of more than 255 digits has further lengths.
            key.push(b'0');
            let mut length = digits.len();
            while length >= 255 {
                key.push(255);
                length -= 255;
            }
            key.push(u8::try_from(length).unwrap_or(u8::MAX));
            key.extend_from_slice(digits);
            rest = after;
        } else {
            key.push(first.to_ascii_lowercase());
            rest = &rest[1..];
        }
    }
    // Ends a text before longer ones: names and labels of Kubernetes contain no NUL.
    key.push(0);
    key.extend_from_slice(text.as_bytes());
    key
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_from_json_as_their_type_says() {
        for (of, json, shown) in [
            (FieldType::Text, json!("a"), "a"),
            (FieldType::Text, json!(1.5), "1.5"),
            (FieldType::Text, json!(true), "true"),
            (FieldType::Integer, json!(-7), "-7"),
            (FieldType::Integer, json!("12"), "12"),
            (FieldType::Real, json!(2), "2"),
            (FieldType::Real, json!(-0.0), "0"),
            (FieldType::Boolean, json!(false), "false"),
            (FieldType::Quantity, json!("1500m"), "1500m"),
            (FieldType::Quantity, json!(2), "2"),
            (
                FieldType::Time,
                json!("2026-01-31T12:00:00.5Z"),
                "2026-01-31T12:00:00.5Z",
            ),
            (FieldType::Ip, json!("::ffff:10.0.0.1"), "10.0.0.1"),
        ] {
            assert_eq!(
                of.read(&json).map(|value| value.to_string()),
                Ok(shown.to_owned())
            );
        }
    }

    #[test]
    fn json_of_another_type_is_no_value() {
        for (of, json) in [
            (FieldType::Text, json!({})),
            (FieldType::Text, json!([])),
            (FieldType::Integer, json!(1.5)),
            (FieldType::Integer, json!(u64::MAX)),
            (FieldType::Integer, json!("many")),
            (FieldType::Real, json!("NaN")),
            (FieldType::Boolean, json!(1)),
            (FieldType::Time, json!(0)),
            (FieldType::Ip, json!("10.0.0.0/8")),
        ] {
            assert!(of.read(&json).is_err(), "{of:?} {json}");
        }
    }

    #[test]
    fn natural_texts_are_ordered_by_their_numbers() {
        let texts = ["", "a", "A", "a1", "a01", "a2", "a10", "a10b", "a10c", "b"];
        let mut sorted: Vec<Value> = texts.map(|text| Value::Natural(text.into())).to_vec();
        sorted.reverse();
        sorted.sort();
        let sorted: Vec<&str> = sorted.iter().filter_map(Value::as_text).collect();
        assert_eq!(
            sorted,
            ["", "A", "a", "a01", "a1", "a2", "a10", "a10b", "a10c", "b"]
        );
    }

    proptest! {
        #[test]
        fn only_equal_texts_have_equal_natural_keys(one in "[a-cA-C0-9.-]{0,6}", other in "[a-cA-C0-9.-]{0,6}") {
            prop_assert_eq!(natural_key(&one) == natural_key(&other), one == other);
        }
    }
}
