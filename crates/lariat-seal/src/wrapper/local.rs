//! Keys of this process.

use std::fmt::{self, Write};
use std::path::Path;

use zeroize::Zeroizing;

use super::read::{self, Readers};
use super::wrapper::{KeyWrapper, WrappedKey, Wrapping};
use crate::context::Context;
use crate::error::{KeyError, WrapError};
use crate::id::KeyId;
use crate::secret::{Cipher, KEY, NONCE, NoRandomness, Secret, TAG, random};

/// Wraps with a key of this process: from a file, the environment, or bytes.
///
/// The first key wraps; the others unwrap what earlier keys wrapped. A file or variable contains keys of 64 hexadecimal
/// digits or of base64, separated by white space; a file may also be a single key of 32 bytes. `openssl rand -base64
/// 32` generates one. Keys must be random: a password is not a key. A key may wrap 2^32 times, which no number of
/// restarts comes near.
///
/// # Rotation
///
/// Put the new key first and keep the old one after it, until everything is wrapped with the new one:
///
/// ```no_run
/// use lariat_seal::LocalKeys;
///
/// # fn example() -> Result<(), lariat_seal::KeyError> {
/// let keys = LocalKeys::from_file("/etc/operator/key")?
///     .with_old(LocalKeys::from_file("/etc/operator/old-key")?);
/// # let _ = keys; Ok(()) }
/// ```
///
/// The id of a key is a hash of it in 16 digits, which is safe to show.
pub struct LocalKeys {
    /// Never empty; the first one wraps.
    keys: Vec<Key>,
}

struct Key {
    id: KeyId,
    cipher: Cipher,
}

impl LocalKeys {
    /// Reads keys from a file that only its owner can read.
    ///
    /// # Errors
    ///
    /// [`KeyError::Exposed`] if the group or others have permissions: `chmod 600` it, or use
    /// [`from_group_file`](Self::from_group_file). [`KeyError::Unreadable`] and [`KeyError::Invalid`] contain the path.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, KeyError> {
        read::file(path.as_ref(), Readers::Owner).map(Self::of)
    }

    /// Reads keys from a file that its group can read, but not change.
    ///
    /// The kubelet mounts a Secret like that in a Pod with an `fsGroup`, if `defaultMode` is 0440 or 0400.
    ///
    /// # Errors
    ///
    /// [`KeyError::Exposed`] if others have permissions, or the group can write; else as
    /// [`from_file`](Self::from_file).
    pub fn from_group_file(path: impl AsRef<Path>) -> Result<Self, KeyError> {
        read::file(path.as_ref(), Readers::Group).map(Self::of)
    }

    /// Reads keys from an environment variable.
    ///
    /// Programs that this one starts inherit the variable, and root can read it; a file is safer.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoVariable`] if it is not set, [`KeyError::Invalid`] if it contains no key.
    pub fn from_env(variable: &str) -> Result<Self, KeyError> {
        read::variable(variable).map(Self::of)
    }

    /// Copies a key of 32 random bytes.
    ///
    /// ```
    /// use lariat_seal::LocalKeys;
    ///
    /// assert!(LocalKeys::from_bytes(b"too short").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`KeyError::Invalid`] if it has another length, or is one byte repeated.
    pub fn from_bytes(key: &[u8]) -> Result<Self, KeyError> {
        read::bytes(key).map(Self::of)
    }

    /// Adds keys that only unwrap.
    #[must_use]
    pub fn with_old(mut self, old: Self) -> Self {
        self.keys.extend(old.keys);
        self
    }

    fn of(secrets: Vec<Secret>) -> Self {
        let keys = secrets.into_iter().map(|secret| Key {
            id: name(&secret),
            cipher: secret.cipher(),
        });
        Self {
            keys: keys.collect(),
        }
    }

    fn first(&self) -> &Key {
        self.keys.first().expect("there is always a key")
    }

    fn seal(&self, key: &[u8; KEY]) -> Result<WrappedKey, WrapError> {
        let Key { id, cipher } = self.first();
        let nonce = random::<NONCE>().map_err(|NoRandomness| WrapError::NoRandomness)?;
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

    fn open(&self, wrapped: &WrappedKey) -> Result<Zeroizing<[u8; KEY]>, WrapError> {
        let id = wrapped.key_id();
        let Some(key) = self.keys.iter().find(|key| key.id == *id) else {
            return Err(WrapError::WrongKey {
                sealed_with: id.clone(),
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

fn context(id: &KeyId) -> Context {
    Context::new("lariat-seal wrapped key 1").and(id.as_str())
}

fn name(secret: &Secret) -> KeyId {
    let mut name = String::with_capacity(16);
    for byte in secret.fingerprint::<8>() {
        write!(name, "{byte:02x}").expect("a string takes everything");
    }
    KeyId::new(name).expect("digits are visible")
}
