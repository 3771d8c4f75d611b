//! A data key, and the ciphers that are derived from it.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::SealError;
use crate::id::DataKeyId;
use crate::secret::{Cipher, NoRandomness, Secret, random};

/// How many values are sealed under one salt: 2^28.
///
/// Then the keyring draws a new salt. With nonces of 96 random bits, the probability that two of them are equal stays
/// below 2^-41.
pub const SEALS_PER_SALT: u64 = 1 << 28;

/// How many ciphers of other salts a data key caches.
const REMEMBERED: usize = 32;

/// The purpose of ciphers for values.
const VALUES: &[u8] = b"lariat-seal values 1";
/// The purpose of ciphers for streams.
const STREAM: &[u8] = b"lariat-seal stream 1";

/// The random input, besides the data key, from which a cipher is derived.
pub(crate) type Salt = [u8; 12];

/// A key that is stored in the envelope.
#[derive(Debug)]
pub(crate) struct DataKey {
    /// Its id, which sealed data carries.
    pub(crate) id: DataKeyId,
    /// The key.
    pub(crate) secret: Secret,
    /// The ciphers that were used to open values.
    opened: Mutex<Opened>,
}

/// A cache of ciphers, at most [`REMEMBERED`].
#[derive(Debug, Default)]
struct Opened {
    /// The ciphers by salt.
    ciphers: Vec<(Salt, Arc<Cipher>)>,
    /// The index of the cipher that is replaced next.
    oldest: usize,
}

impl DataKey {
    /// Creates a data key with the id that follows from the secret.
    pub(crate) fn new(secret: Secret) -> Self {
        Self {
            id: DataKeyId(secret.fingerprint()),
            secret,
            opened: Mutex::default(),
        }
    }

    /// Returns the id.
    pub(crate) fn id(&self) -> DataKeyId {
        self.id
    }

    /// Returns the cipher of a stream, which seals nothing else.
    pub(crate) fn for_stream(&self, salt: &Salt) -> Cipher {
        self.secret.derive(STREAM, salt)
    }

    /// Returns the cipher of values that were sealed under a salt.
    pub(crate) fn for_values(&self, salt: &Salt) -> Arc<Cipher> {
        let mut opened = self.opened.lock();
        if let Some((_, cipher)) = opened.ciphers.iter().find(|(known, _)| known == salt) {
            return Arc::clone(cipher);
        }
        let cipher = Arc::new(self.secret.derive(VALUES, salt));
        let entry = (*salt, Arc::clone(&cipher));
        // The oldest cipher is replaced: the cache must not grow with the number of earlier runs.
        let oldest = opened.oldest;
        match opened.ciphers.get_mut(oldest) {
            Some(place) => *place = entry,
            None => opened.ciphers.push(entry),
        }
        opened.oldest = (oldest + 1) % REMEMBERED;
        cipher
    }
}

/// A salt that this process drew, and its cipher.
#[derive(Debug)]
pub(crate) struct Session {
    /// The data key.
    pub(crate) key: Arc<DataKey>,
    /// The salt.
    pub(crate) salt: Salt,
    /// The cipher that is derived from both.
    pub(crate) cipher: Arc<Cipher>,
}

impl Session {
    /// Draws a new salt for a data key.
    pub(crate) fn new(key: &Arc<DataKey>) -> Result<Arc<Self>, SealError> {
        let salt = random().map_err(|NoRandomness| SealError::NoRandomness)?;
        Ok(Arc::new(Self {
            key: Arc::clone(key),
            salt,
            // Also stored in the cache, so that values of this process are opened without another derivation.
            cipher: key.for_values(&salt),
        }))
    }
}

/// The current salt, and how many values may still be sealed under it.
#[derive(Debug)]
pub(crate) struct InUse {
    /// The current salt and cipher.
    pub(crate) session: Arc<Session>,
    /// How many values may still be sealed.
    pub(crate) left: u64,
}
