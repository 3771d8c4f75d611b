//! The version of an object's state.

use std::cmp::Ordering;
use std::fmt;

/// A resource version as the API server sent it.
///
/// Kubernetes defines resource versions as opaque: equal texts are equal states, and nothing else is promised. Since
/// KEP-5504, conformant servers use decimal numbers that can be compared within one kind. [`compare`](Self::compare)
/// compares two numbers and returns `None` for anything else, so that callers can choose the safe behaviour.
///
/// ```
/// use std::cmp::Ordering;
/// use lariat::core::ResourceVersion;
///
/// let (old, new) = (ResourceVersion::new("9"), ResourceVersion::new("10"));
/// assert_eq!(old.compare(&new), Some(Ordering::Less));
/// assert_eq!(old.compare(&ResourceVersion::new("opaque")), None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Repr);

/// The representation of a version.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    /// A decimal number, exactly as `u64` prints it.
    Number(u64),
    /// Any other text, including the empty one.
    Text(Box<str>),
}

impl ResourceVersion {
    /// Creates a version from its text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        // `parse` accepts leading zeros and a plus sign. A version must print as it was written, so such texts stay
        // texts.
        let canonical = text == "0" || (!text.starts_with('0') && !text.starts_with('+'));
        match text.parse() {
            Ok(number) if canonical => Self(Repr::Number(number)),
            _ => Self(Repr::Text(text.into())),
        }
    }

    /// Compares two versions if both are numbers.
    ///
    /// `None` means that the order is unknown. Equal texts compare as equal.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (&self.0, &other.0) {
            (Repr::Number(a), Repr::Number(b)) => Some(a.cmp(b)),
            // Different texts have no order, not even that of their letters: `9` would come after `10`.
            (a, b) => (a == b).then_some(Ordering::Equal),
        }
    }

    /// Returns the version as a number.
    ///
    /// # Errors
    ///
    /// The text of the version, if it is not a decimal number as [`u64`] prints it.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::core::ResourceVersion;
    ///
    /// assert_eq!(ResourceVersion::new("42").number(), Ok(42));
    /// assert_eq!(ResourceVersion::new("042").number(), Err("042"));
    /// ```
    pub fn number(&self) -> Result<u64, &str> {
        match &self.0 {
            Repr::Number(number) => Ok(*number),
            Repr::Text(text) => Err(text),
        }
    }

    /// Returns whether the version is empty, which means that the server sent none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Repr::Text(text) if text.is_empty())
    }
}

impl Default for ResourceVersion {
    /// The empty version: "most recent" in a list request, none in an object.
    fn default() -> Self {
        Self(Repr::Text(Box::default()))
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        Self(Repr::Number(number))
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Number(number) => fmt::Display::fmt(number, f),
            Repr::Text(text) => f.pad(text),
        }
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceVersion({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: &str, b: &str, expected: Option<Ordering>) {
        assert_eq!(
            ResourceVersion::new(a).compare(&ResourceVersion::new(b)),
            expected,
            "{a} {b}"
        );
    }

    #[test]
    fn numbers_compare_as_numbers_and_other_texts_do_not_compare() {
        check("9", "10", Some(Ordering::Less));
        check("10", "10", Some(Ordering::Equal));
        check("abc", "abc", Some(Ordering::Equal));
        check("abc", "abd", None);
        check("10", "abc", None);
        check("10", "010", None);
        check("10", "+10", None);
    }

    #[test]
    fn the_text_survives() {
        let huge = "123456789012345678901234567890";
        for text in ["", "0", "00", "+1", "7", "18446744073709551615", huge, "x"] {
            assert_eq!(ResourceVersion::new(text).to_string(), text);
        }
    }
}
