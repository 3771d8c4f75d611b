//! Key material, which is overwritten on drop and never shown by `Debug`.

use std::fmt;
use std::hint::black_box;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::digest::{self, SHA256};
use ring::hkdf::{HKDF_SHA256, Prk};
use ring::hmac::{self, HMAC_SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use crate::context::Context;

/// The length of a key, in bytes.
pub(crate) const KEY: usize = 32;
/// The length of a nonce, in bytes.
pub(crate) const NONCE: usize = 12;
/// How many bytes a cipher adds.
pub(crate) const TAG: usize = 16;
/// How many bytes AES-GCM can encrypt in one piece.
pub(crate) const LARGEST: u64 = (1 << 36) - 32;

/// The error of an operating system that provides no random numbers.
pub(crate) struct NoRandomness;

/// Fills bytes with random numbers from the operating system.
pub(crate) fn randomise(bytes: &mut [u8]) -> Result<(), NoRandomness> {
    SystemRandom::new().fill(bytes).map_err(|_| NoRandomness)
}

/// Returns random bytes that are not secret.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    randomise(&mut bytes)?;
    Ok(bytes)
}

/// The bytes of a key, boxed so that moving the value does not copy them.
pub(crate) struct Secret(Box<Zeroizing<[u8; KEY]>>);

impl Secret {
    /// Creates a random key.
    pub(crate) fn random() -> Result<Self, NoRandomness> {
        // Boxed before it is filled, so that no copy of the key remains on the stack.
        let mut secret = Self(Box::default());
        randomise(&mut **secret.0)?;
        Ok(secret)
    }

    /// Copies a key; `None` if the length is wrong.
    pub(crate) fn copied(bytes: &[u8]) -> Option<Self> {
        let mut secret = Self(Box::default());
        if bytes.len() != KEY {
            return None;
        }
        secret.0.copy_from_slice(bytes);
        Some(secret)
    }

    /// Returns the bytes of the key.
    pub(crate) fn bytes(&self) -> &[u8; KEY] {
        &self.0
    }

    /// Returns an id of the key: equal for equal keys, and not reversible.
    pub(crate) fn fingerprint<const N: usize>(&self) -> [u8; N] {
        let mut hash = digest::Context::new(&SHA256);
        hash.update(b"lariat-seal key id 1");
        hash.update(self.bytes());
        let mut name = [0; N];
        // A part of the hash is as irreversible as all of it.
        name.copy_from_slice(&hash.finish().as_ref()[..N]);
        name
    }

    /// Returns the cipher of the key itself.
    pub(crate) fn cipher(&self) -> Cipher {
        Cipher::new(self.bytes())
    }

    /// Derives the cipher for a purpose and a salt.
    pub(crate) fn derive(&self, purpose: &'static [u8], salt: &[u8]) -> Cipher {
        let info = [purpose, salt];
        // The key is uniformly random, so HKDF's extraction step is not needed.
        let secret = Prk::new_less_safe(HKDF_SHA256, self.bytes());
        let key = secret
            .expand(&info, &AES_256_GCM)
            .expect("a key is shorter than what HKDF can derive");
        Cipher(LessSafeKey::new(UnboundKey::from(key)))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A key in the form that encrypts.
pub(crate) struct Cipher(LessSafeKey);

/// The error of data that was changed, or of another key, nonce or context.
pub(crate) struct Rejected;

impl Cipher {
    /// Prepares a key for encryption.
    fn new(key: &[u8; KEY]) -> Self {
        Self(expand(key))
    }

    /// Encrypts in place and returns the tag, which belongs after the data.
    ///
    /// The caller must not use a nonce twice. `None` if the data is too large.
    pub(crate) fn seal(
        &self,
        nonce: [u8; NONCE],
        context: impl AsRef<[u8]>,
        data: &mut [u8],
    ) -> Option<Tag> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = self
            .0
            .seal_in_place_separate_tag(nonce, Aad::from(context), data);
        sealed.ok()
    }

    /// Decrypts data that is followed by its tag, in place, and returns the data.
    pub(crate) fn open<'a>(
        &self,
        nonce: [u8; NONCE],
        context: impl AsRef<[u8]>,
        data: &'a mut [u8],
    ) -> Result<&'a mut [u8], Rejected> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = self.0.open_in_place(nonce, Aad::from(context), data);
        opened.map_err(|_| Rejected)
    }

    /// Overwrites the key in place.
    ///
    /// `ring` does not do that. Another key in this form has the same size, and `black_box` keeps the compiler from
    /// removing a write that is never read.
    fn wipe(&mut self) {
        self.0 = expand(&[0; KEY]);
        // Counts as a read of the new value, so the write is kept.
        black_box(&self.0);
    }
}

/// Prepares a key for `ring`.
fn expand(key: &[u8; KEY]) -> LessSafeKey {
    let key = UnboundKey::new(&AES_256_GCM, key).expect("it has the length of the cipher");
    LessSafeKey::new(key)
}

impl Drop for Cipher {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher(..)")
    }
}

/// A key in the form that hashes.
pub(crate) struct Hasher(hmac::Key);

impl Hasher {
    /// Prepares a key for hashing.
    pub(crate) fn new(secret: &Secret) -> Self {
        Self(hmac::Key::new(HMAC_SHA256, secret.bytes()))
    }

    /// Returns the first 128 bits of the HMAC of a context and bytes.
    pub(crate) fn hash(&self, context: &Context, bytes: &[u8]) -> [u8; 16] {
        let mut hash = hmac::Context::with_key(&self.0);
        // A context has a fixed length, so no separator is needed.
        hash.update(context.as_ref());
        hash.update(bytes);
        let mut short = [0; 16];
        short.copy_from_slice(&hash.sign().as_ref()[..16]);
        short
    }

    /// Overwrites the key in place.
    fn wipe(&mut self) {
        self.0 = hmac::Key::new(HMAC_SHA256, &[0; KEY]);
        black_box(&self.0);
    }
}

impl Drop for Hasher {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_was_overwritten_with_another_key() {
        let secret = Secret::copied(&[7; KEY]).unwrap();
        let context = Context::new("test");
        let (mut cipher, zeros) = (secret.cipher(), Cipher::new(&[0; KEY]));
        let sealed = |cipher: &Cipher| {
            let mut data = *b"text";
            let tag = cipher.seal([0; NONCE], context, &mut data).unwrap();
            [&data[..], tag.as_ref()].concat()
        };
        assert_ne!(sealed(&cipher), sealed(&zeros));
        cipher.wipe();
        assert_eq!(sealed(&cipher), sealed(&zeros));

        let mut hasher = Hasher::new(&secret);
        let zeros = Hasher::new(&Secret::copied(&[0; KEY]).unwrap());
        assert_ne!(hasher.hash(&context, b"a"), zeros.hash(&context, b"a"));
        hasher.wipe();
        assert_eq!(hasher.hash(&context, b"a"), zeros.hash(&context, b"a"));
    }
}
