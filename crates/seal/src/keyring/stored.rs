//! The form in which a keyring is stored.
//!
//! | bytes | |
//! |---|---|
//! | 4 | `LSK1` |
//! | 1, n | length and text of the id of the wrapping key |
//! | 2, n | length (little-endian) and bytes of the envelope's key, wrapped |
//! | 12 | a random nonce |
//! | 32 | the key of hashes, encrypted with the envelope's key as all that follows |
//! | 32 each | the data keys; the last seals |
//! | 16 | the tag, which covers everything above |

use std::sync::Arc;

use zeroize::Zeroizing;

use crate::data_key::DataKey;
use crate::error::SealError;
use crate::id::KeyId;
use crate::secret::{KEY, NONCE, NoRandomness, Secret, TAG, random};
use crate::wrapper::WrappedKey;

/// The first bytes of a stored keyring; the digit is the version of the format.
const FORMAT: [u8; 4] = *b"LSK1";

/// The decrypted contents of a stored keyring.
pub(super) struct Keys {
    /// The key of hashes.
    pub(super) hashes: Secret,
    /// The data keys. Never empty; the last one seals.
    pub(super) data: Vec<Arc<DataKey>>,
}

/// Encrypts the keys and returns the stored form.
pub(super) fn write(
    wrapped: &WrappedKey,
    envelope: &Secret,
    hashes: &Secret,
    data: &[Arc<DataKey>],
) -> Result<Box<[u8]>, SealError> {
    let id = wrapped.key_id().as_str();
    let (Ok(id_length), Ok(length)) =
        (u8::try_from(id.len()), u16::try_from(wrapped.bytes().len()))
    else {
        return Err(SealError::Keyring("the wrapped key is too large"));
    };
    let nonce = random::<NONCE>().map_err(|NoRandomness| SealError::NoRandomness)?;
    let head = [
        &FORMAT[..],
        &[id_length],
        id.as_bytes(),
        &length.to_le_bytes(),
        wrapped.bytes(),
        &nonce,
    ];
    let mut stored = head.concat();
    // Allocated in its final size, because a vector that grows leaves copies of keys behind. It is encrypted in place.
    let mut keys = Zeroizing::new(Vec::with_capacity(KEY * (1 + data.len())));
    keys.extend_from_slice(hashes.bytes());
    for key in data {
        keys.extend_from_slice(key.secret.bytes());
    }
    let tag = envelope
        .cipher()
        .seal(nonce, &stored, &mut keys)
        .ok_or(SealError::Keyring("it has too many keys"))?;
    stored.extend_from_slice(&keys);
    stored.extend_from_slice(tag.as_ref());
    Ok(stored.into())
}

/// A stored keyring that was read and not decrypted yet.
pub(super) struct Closed<'a> {
    /// The wrapped key that encrypts the others.
    pub(super) wrapped: WrappedKey,
    /// The part before the ciphertext, which the tag covers too.
    head: &'a [u8],
    /// The nonce.
    nonce: [u8; NONCE],
    /// The ciphertext and the tag.
    sealed: &'a [u8],
}

/// Reads a stored keyring without decrypting it.
pub(super) fn read(stored: &[u8]) -> Result<Closed<'_>, SealError> {
    let cut_off = SealError::Keyring("it is cut off");
    let parse = || {
        let rest = stored.strip_prefix(&FORMAT)?;
        let (length, rest) = rest.split_first()?;
        let (id, rest) = rest.split_at_checked(usize::from(*length))?;
        let (length, rest) = rest.split_first_chunk()?;
        let (wrapped, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        let (nonce, sealed) = rest.split_first_chunk()?;
        let keys = sealed.len().checked_sub(TAG)?;
        // At least the key of hashes and one data key.
        (keys >= 2 * KEY && keys % KEY == 0).then_some((id, wrapped, *nonce, sealed))
    };
    // Distinguishes other data from a keyring that was cut off within its first bytes.
    if !stored.starts_with(&FORMAT[..stored.len().min(FORMAT.len())]) {
        return Err(SealError::Keyring(
            "it is no keyring, or has a later format",
        ));
    }
    let (id, wrapped, nonce, sealed) = parse().ok_or(cut_off)?;
    let text = std::str::from_utf8(id).map_err(|_| SealError::Keyring("the id of its key"))?;
    let id = KeyId::new(text).map_err(|_| SealError::Keyring("the id of its key"))?;
    Ok(Closed {
        wrapped: WrappedKey::new(id, wrapped)?,
        head: &stored[..stored.len() - sealed.len()],
        nonce,
        sealed,
    })
}

impl Closed<'_> {
    /// Decrypts the keys.
    pub(super) fn open(&self, envelope: &Secret) -> Result<Keys, SealError> {
        let mut keys = Zeroizing::new(self.sealed.to_vec());
        let opened = envelope
            .cipher()
            // The head is authenticated too, so the wrapped key cannot be exchanged.
            .open(self.nonce, self.head, &mut keys)
            .map_err(|_| SealError::Keyring("it was changed"))?;
        let mut secrets = opened.chunks_exact(KEY).filter_map(Secret::copied);
        let hashes = secrets.next();
        let data: Vec<_> = secrets.map(|key| Arc::new(DataKey::new(key))).collect();
        match hashes {
            Some(hashes) if !data.is_empty() => Ok(Keys { hashes, data }),
            _ => Err(SealError::Keyring("it has no keys")),
        }
    }
}
