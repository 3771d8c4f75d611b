//! The uids of objects.

use std::fmt;

/// The uid of an object, stored in 16 bytes if it is a UUID.
///
/// API servers generate UUIDs; any other text is kept as it is.
///
/// ```
/// use lariat::core::Uid;
///
/// let uid = Uid::new("5f0c1d2e-3b4a-4c6d-8e7f-901234567890");
/// assert_eq!(uid.to_string(), "5f0c1d2e-3b4a-4c6d-8e7f-901234567890");
/// assert!(Uid::new("").is_empty());
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Uid(UidRepr);

/// The representation of a uid.
#[derive(Clone, PartialEq, Eq, Hash)]
enum UidRepr {
    /// A UUID in its canonical lower-case form.
    Uuid([u8; 16]),
    /// Any other text.
    Text(Box<str>),
}

impl Uid {
    /// Creates a uid from its text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        match parse_uuid(text) {
            Some(bytes) => Self(UidRepr::Uuid(bytes)),
            None => Self(UidRepr::Text(text.into())),
        }
    }

    /// Returns whether the uid is empty, as before an object is created.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, UidRepr::Text(text) if text.is_empty())
    }
}

/// Parses a UUID in its canonical form: `8-4-4-4-12` lower-case hexadecimal digits.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let mut digits = text
        .bytes()
        .enumerate()
        .filter_map(|(at, byte)| match (at, byte) {
            // Only the canonical form may become bytes: every uid must print as it was written.
            (8 | 13 | 18 | 23, b'-') => None,
            (_, b'0'..=b'9') => Some(Some(byte - b'0')),
            (_, b'a'..=b'f') => Some(Some(byte - b'a' + 10)),
            _ => Some(None),
        });
    if text.len() != 36 {
        return None;
    }
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        *byte = (digits.next()?? << 4) | digits.next()??;
    }
    // With a digit in the place of a hyphen there are more than 32 digits.
    digits.next().is_none().then_some(bytes)
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            UidRepr::Text(text) => f.pad(text),
            UidRepr::Uuid(bytes) => {
                for (at, byte) in bytes.iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uid({self})")
    }
}

impl From<&Uid> for Uid {
    fn from(uid: &Uid) -> Self {
        uid.clone()
    }
}
