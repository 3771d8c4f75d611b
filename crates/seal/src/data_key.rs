//! A data key, and the ciphers that are derived from it.

use crate::id::DataKeyId;
use crate::secret::{Cipher, Secret};

/// The purpose of ciphers for values.
const VALUE: &[u8] = b"lariat-seal values 1";
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
}

impl DataKey {
    pub(crate) fn new(secret: Secret) -> Self {
        let id = DataKeyId(secret.fingerprint());
        Self { id, secret }
    }

    /// Derives the cipher of one stream.
    pub(crate) fn for_stream(&self, salt: &Salt) -> Cipher {
        self.secret.derive(STREAM, salt)
    }

    /// Derives the cipher of one value.
    pub(crate) fn for_value(&self, salt: &Salt) -> Cipher {
        self.secret.derive(VALUE, salt)
    }
}
