//! A wrapper with keys of this process.

use std::fmt::{self, Write};
use std::path::Path;

use zeroize::Zeroizing;

use super::read::{self, Readers};
use super::wrapper::{KeyWrapper, WrappedKey, Wrapping};
use crate::context::Context;
use crate::error::{KeyError, WrapError};
use crate::id::KeyId;
use crate::secret::{Cipher, KEY, NONCE, NoRandomness, Secret, TAG, random};

/// Wraps keys with a key of this process, from a file, the environment or bytes.
///
/// The first key wraps; the others unwrap what earlier keys have wrapped. A file or variable contains keys in 64
/// hexadecimal digits or in base64, separated by white space. A file may also be a single key of 32 bytes. `openssl
/// rand -base64 32` generates a key. Keys must be random: a password is not a key. A key may wrap 2^32 times, which no
/// number of restarts approaches.
///
/// The id of a key is a hash of it in 16 digits, which is safe to show.
///
/// # Rotation
///
/// Put the new key first and keep the old one after it until everything is wrapped with the new one:
///
/// ```no_run
/// use lariat::seal::LocalKeys;
///
/// # fn example() -> Result<(), lariat::seal::KeyError> {
/// let keys = LocalKeys::from_file("/etc/operator/key")?
///     .with_old(LocalKeys::from_file("/etc/operator/old-key")?);
/// # let _ = keys; Ok(()) }
/// ```
pub struct LocalKeys {
    /// The keys. Never empty; the first one wraps.
    keys: Vec<Key>,
}

/// A key.
struct Key {
    /// Its id.
    id: KeyId,
    /// The key in the form that encrypts.
    cipher: Cipher,
}

impl LocalKeys {
    /// Reads keys from a file that only its owner can read.
    ///
    /// # Errors
    ///
    /// [`KeyError::Exposed`] if the group or others have permissions: `chmod 600` the file, or use
    /// [`from_group_file`](Self::from_group_file). [`KeyError::Unreadable`] if it cannot be read, [`KeyError::Invalid`]
    /// if it contains no key.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, KeyError> {
        read::file(path.as_ref(), Readers::Owner).map(Self::of)
    }

    /// Reads keys from a file that its group can read but not change.
    ///
    /// The kubelet mounts a Secret like that in a Pod with an `fsGroup` if `defaultMode` is 0440 or 0400.
    ///
    /// # Errors
    ///
    /// [`KeyError::Exposed`] if others have permissions or the group can write; otherwise as
    /// [`from_file`](Self::from_file).
    pub fn from_group_file(path: impl AsRef<Path>) -> Result<Self, KeyError> {
        read::file(path.as_ref(), Readers::Group).map(Self::of)
    }

    /// Reads keys from an environment variable.
    ///
    /// Child processes inherit the variable, and root can read it; a file is safer.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoVariable`] if it is not set, [`KeyError::Invalid`] if it contains no key.
    pub fn from_env(variable: &str) -> Result<Self, KeyError> {
        read::variable(variable).map(Self::of)
    }

    /// Copies a key of 32 random bytes.
    ///
    /// # Errors
    ///
    /// [`KeyError::Invalid`] if the length is not 32, or if all bytes are equal.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::seal::LocalKeys;
    ///
    /// assert!(LocalKeys::from_bytes(b"too short").is_err());
    /// ```
    pub fn from_bytes(key: &[u8]) -> Result<Self, KeyError> {
        read::bytes(key).map(Self::of)
    }

    /// Adds keys that only unwrap.
    #[must_use]
    pub fn with_old(mut self, old: Self) -> Self {
        self.keys.extend(old.keys);
        self
    }

    /// Creates the wrapper of some keys.
    fn of(secrets: Vec<Secret>) -> Self {
        let keys = secrets.into_iter().map(|secret| Key {
            id: name(&secret),
            cipher: secret.cipher(),
        });
        Self {
            keys: keys.collect(),
        }
    }

    /// Returns the key that wraps.
    fn first(&self) -> &Key {
        self.keys.first().expect("there is always a key")
    }

    /// Wraps a key with the first key.
    fn seal(&self, key: &[u8; KEY]) -> Result<WrappedKey, WrapError> {
        let Key { id, cipher } = self.first();
        let nonce = random::<NONCE>().map_err(|NoRandomness| WrapError::NoRandomness)?;
        // Encrypted in place; a copy, because the caller's key is borrowed.
        let mut secret = Zeroizing::new(*key);
        let tag = cipher
            .seal(nonce, context(id), secret.as_mut())
            .expect("a key is short");
        let mut bytes = Vec::with_capacity(NONCE + KEY + TAG);
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(secret.as_ref());
        bytes.extend_from_slice(tag.as_ref());
        WrappedKey::new(id.clone(), bytes)
    }

    /// Unwraps a key with the key that wrapped it.
    fn open(&self, wrapped: &WrappedKey) -> Result<Zeroizing<[u8; KEY]>, WrapError> {
        let id = wrapped.key_id();
        let Some(key) = self.keys.iter().find(|key| key.id == *id) else {
            return Err(WrapError::WrongKey {
                sealed_with: id.clone(),
                // Ids are hashes, so the error may name all given keys.
                given: self.keys.iter().map(|key| key.id.clone()).collect(),
            });
        };
        let rejected = || WrapError::Rejected(id.clone());
        let (nonce, sealed) = wrapped.bytes().split_first_chunk().ok_or_else(rejected)?;
        let mut sealed = Zeroizing::new(sealed.to_vec());
        let opened = key
            .cipher
            .open(*nonce, context(id), &mut sealed)
            .map_err(|_| rejected())?;
        let mut secret = Zeroizing::new([0; KEY]);
        // Authentic, but not a key: wrapped by other code with the same key.
        if opened.len() != KEY {
            return Err(rejected());
        }
        secret.copy_from_slice(opened);
        Ok(secret)
    }
}

impl KeyWrapper for LocalKeys {
    fn current(&self) -> KeyId {
        self.first().id.clone()
    }

    fn wrap<'a>(&'a self, key: &'a [u8; KEY]) -> Wrapping<'a, WrappedKey> {
        Box::pin(async move { self.seal(key) })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> Wrapping<'a, Zeroizing<[u8; KEY]>> {
        Box::pin(async move { self.open(wrapped) })
    }
}

impl fmt::Debug for LocalKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.keys.iter().map(|key| &key.id);
        f.debug_list().entries(ids).finish()
    }
}

/// Returns the context of keys that are wrapped with a key.
fn context(id: &KeyId) -> Context {
    Context::new("lariat-seal wrapped key 1").and(id.as_str())
}

/// Returns the id of a key.
fn name(secret: &Secret) -> KeyId {
    let mut name = String::with_capacity(16);
    for byte in secret.fingerprint::<8>() {
        write!(name, "{byte:02x}").expect("a string takes everything");
    }
    KeyId::new(name).expect("digits are visible")
}
