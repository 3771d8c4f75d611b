//! The trait that wraps keys, and its results.

use std::fmt;
use std::pin::Pin;

use zeroize::Zeroizing;

use crate::error::WrapError;
use crate::id::KeyId;

/// The boxed future that a [`KeyWrapper`] returns.
pub type Wrapping<'a, T> = Pin<Box<dyn Future<Output = Result<T, WrapError>> + Send + 'a>>;

/// Encrypts the key of a keyring, so that the keyring can be stored.
///
/// [`LocalKeys`](crate::LocalKeys) does so with keys of this process. An implementation for a key management service
/// sends the key to the service; it has 32 bytes, which every service accepts in one request. It is called once when a
/// keyring is created, loaded or rewrapped, and never when values are sealed or opened.
///
/// ```
/// use lariat::seal::{KeyId, KeyWrapper, LocalKeys, WrappedKey, Wrapping, Zeroizing};
///
/// /// A service, which a real program would call over the network.
/// struct Service {
///     key: KeyId,
///     inside: LocalKeys,
/// }
///
/// impl KeyWrapper for Service {
///     fn current(&self) -> KeyId {
///         self.key.clone()
///     }
///
///     fn wrap<'a>(&'a self, key: &'a [u8; 32]) -> Wrapping<'a, WrappedKey> {
///         Box::pin(async move {
///             let answer = self.inside.wrap(key).await?;
///             WrappedKey::new(self.key.clone(), answer.bytes())
///         })
///     }
///
///     fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> Wrapping<'a, Zeroizing<[u8; 32]>> {
///         Box::pin(async move {
///             let request = WrappedKey::new(self.inside.current(), wrapped.bytes())?;
///             self.inside.unwrap(&request).await
///         })
///     }
/// }
/// # let _ = |service: Service| Box::new(service) as Box<dyn KeyWrapper>;
/// ```
pub trait KeyWrapper: Send + Sync + 'static {
    /// Returns the id of the key that [`wrap`](Self::wrap) uses.
    ///
    /// The id is stored in plain text beside the wrapped key. When it changes, a keyring should be
    /// [rewrapped](crate::Keyring::rewrapped).
    fn current(&self) -> KeyId;

    /// Encrypts a key with the current key.
    fn wrap<'a>(&'a self, key: &'a [u8; 32]) -> Wrapping<'a, WrappedKey>;

    /// Decrypts a key, which may have been wrapped with an earlier key.
    ///
    /// The wrapper must reject a changed key with [`WrapError::Rejected`].
    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> Wrapping<'a, Zeroizing<[u8; 32]>>;
}

/// An encrypted key and the id of the key that decrypts it.
#[derive(Clone, PartialEq, Eq)]
pub struct WrappedKey {
    /// The id of the key that decrypts it.
    key_id: KeyId,
    /// The encrypted key.
    bytes: Box<[u8]>,
}

impl WrappedKey {
    /// Creates a wrapped key from the answer of a key management service.
    ///
    /// # Errors
    ///
    /// [`WrapError::TooLarge`] for more than 65,535 bytes.
    pub fn new(key_id: KeyId, bytes: impl Into<Box<[u8]>>) -> Result<Self, WrapError> {
        let bytes = bytes.into();
        // The stored form has two bytes for the length.
        if bytes.len() > usize::from(u16::MAX) {
            return Err(WrapError::TooLarge(key_id));
        }
        Ok(Self { key_id, bytes })
    }

    /// Returns the id of the key that decrypts it.
    #[must_use]
    pub fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    /// Returns the encrypted key.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for WrappedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WrappedKey")
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}
