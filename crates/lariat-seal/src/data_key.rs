//! A data key, and the ciphers that are derived from it.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::SealError;
use crate::id::DataKeyId;
use crate::secret::{Cipher, NoRandomness, Secret, random};

/// How many values are sealed under one salt before a keyring draws another: 2^28.
///
/// With nonces of 96 random bits, the probability that two of them are equal is then below 2^-41.
pub const SEALS_PER_SALT: u64 = 1 << 28;

/// For how many salts of other runs a data key keeps the ciphers.
const REMEMBERED: usize = 32;

const VALUES: &[u8] = b"lariat-seal values 1";
const STREAM: &[u8] = b"lariat-seal stream 1";

/// What ciphers are derived from, beside the data key.
pub(crate) type Salt = [u8; 12];

/// A key that is stored in the envelope.
#[derive(Debug)]
pub(crate) struct DataKey {
    pub(crate) id: DataKeyId,
    pub(crate) secret: Secret,
    opened: Mutex<Opened>,
}

/// The ciphers that were used to open values, at most [`REMEMBERED`].
#[derive(Debug, Default)]
struct Opened {
    ciphers: Vec<(Salt, Arc<Cipher>)>,
    /// The index of the one that is replaced next.
    oldest: usize,
}

impl DataKey {
    pub(crate) fn new(secret: Secret) -> Self {
        Self {
            id: DataKeyId(secret.fingerprint()),
            secret,
            opened: Mutex::default(),
        }
    }

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
        // A ring of ciphers: the table of salts must not grow with the number of earlier runs.
        let oldest = opened.oldest;
        match opened.ciphers.get_mut(oldest) {
            Some(place) => *place = entry,
            None => opened.ciphers.push(entry),
        }
        opened.oldest = (oldest + 1) % REMEMBERED;
        cipher
    }
}

/// A salt that this process drew, and the cipher for it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) key: Arc<DataKey>,
    pub(crate) salt: Salt,
    pub(crate) cipher: Arc<Cipher>,
}

impl Session {
    pub(crate) fn new(key: &Arc<DataKey>) -> Result<Arc<Self>, SealError> {
        let salt = random().map_err(|NoRandomness| SealError::NoRandomness)?;
        Ok(Arc::new(Self {
            key: Arc::clone(key),
            salt,
            cipher: key.for_values(&salt),
        }))
    }
}

/// The current salt, and how many values may still be sealed under it.
#[derive(Debug)]
pub(crate) struct InUse {
    pub(crate) session: Arc<Session>,
    pub(crate) left: u64,
}
