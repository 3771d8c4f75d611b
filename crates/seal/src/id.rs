//! The ids of keys, which are not secret.

use std::fmt;

/// The id of a key that wraps other keys; it is not secret.
///
/// ```
/// use lariat::seal::KeyId;
///
/// let id = KeyId::new("arn:aws:kms:eu-central-1:1:key/a")?;
/// assert_eq!(id.as_str(), "arn:aws:kms:eu-central-1:1:key/a");
/// assert!(KeyId::new("").is_err());
/// # Ok::<(), lariat::seal::InvalidKeyId>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(Box<str>);

/// A text that is not a valid [`KeyId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key id must have 1 to 255 visible ASCII characters")]
pub struct InvalidKeyId;

impl KeyId {
    /// Creates an id, such as the name of a key in a key management service.
    ///
    /// # Errors
    ///
    /// [`InvalidKeyId`] unless it has 1 to 255 visible ASCII characters.
    pub fn new(name: impl Into<Box<str>>) -> Result<Self, InvalidKeyId> {
        let name = name.into();
        let is_visible = name.bytes().all(|byte| byte.is_ascii_graphic());
        if is_visible && (1..=255).contains(&name.len()) {
            Ok(Self(name))
        } else {
            Err(InvalidKeyId)
        }
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a data key, which is a part of the data it sealed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataKeyId(pub(crate) [u8; 4]);

impl fmt::Display for DataKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl fmt::Debug for DataKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
