//! Key material, which is overwritten on drop and not shown by `Debug`.

use std::fmt;
use std::hint::black_box;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::digest::{self, SHA256};
use ring::hkdf::{HKDF_SHA256, Prk};
use ring::hmac::{self, HMAC_SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use crate::context::Context;

/// The length of a key in bytes.
pub(crate) const KEY: usize = 32;
/// The length of a nonce in bytes.
pub(crate) const NONCE: usize = 12;
/// How many bytes a cipher adds.
pub(crate) const TAG: usize = 16;
/// How many bytes AES-GCM encrypts in one piece.
pub(crate) const LARGEST: u64 = (1 << 36) - 32;

/// The operating system has no random numbers.
pub(crate) struct NoRandomness;

/// Fills bytes with random ones from the operating system.
pub(crate) fn randomise(bytes: &mut [u8]) -> Result<(), NoRandomness> {
    SystemRandom::new().fill(bytes).map_err(|_| NoRandomness)
}

/// Returns random bytes that are not secret.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    randomise(&mut bytes)?;
    Ok(bytes)
}

/// The bytes of a key, which stay at one place in memory.
pub(crate) struct Secret(Box<Zeroizing<[u8; KEY]>>);

impl Secret {
    pub(crate) fn random() -> Result<Self, NoRandomness> {
        let mut secret = Self(Box::default());
        randomise(&mut **secret.0)?;
        Ok(secret)
    }

    /// Copies a key; `None` if it has another length.
    pub(crate) fn copied(bytes: &[u8]) -> Option<Self> {
        let mut secret = Self(Box::default());
        if bytes.len() != KEY {
            return None;
        }
        secret.0.copy_from_slice(bytes);
        Some(secret)
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY] {
        &self.0
    }

    /// Returns an id of a key: equal for equal keys, and not reversible.
    pub(crate) fn fingerprint<const N: usize>(&self) -> [u8; N] {
        let mut hash = digest::Context::new(&SHA256);
        hash.update(b"lariat-seal key id 1");
        hash.update(self.bytes());
        let mut name = [0; N];
        name.copy_from_slice(&hash.finish().as_ref()[..N]);
        name
    }

    /// Creates a cipher with the key itself.
    pub(crate) fn cipher(&self) -> Cipher {
        Cipher::new(self.bytes())
    }

    /// Derives the cipher for a purpose and a salt.
    pub(crate) fn derive(&self, purpose: &'static [u8], salt: &[u8]) -> Cipher {
        let info = [purpose, salt];
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

/// The data was changed, or the key, nonce or context is another one.
pub(crate) struct Rejected;

impl Cipher {
    fn new(key: &[u8; KEY]) -> Self {
        Self(expand(key))
    }

    /// Encrypts in place, and returns the tag, which belongs after the data.
    ///
    /// The caller must use each nonce once only.
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

    /// Decrypts data in place that is followed by its tag, and returns the data.
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
    /// ring leaves its keys in memory. The form of another key has the same size, and `black_box` keeps the compiler
    /// from removing a write that is not read.
    fn wipe(&mut self) {
        self.0 = expand(&[0; KEY]);
        black_box(&self.0);
    }
}

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
    pub(crate) fn new(secret: &Secret) -> Self {
        Self(hmac::Key::new(HMAC_SHA256, secret.bytes()))
    }

    pub(crate) fn hash(&self, context: &Context, bytes: &[u8]) -> [u8; 16] {
        let mut hash = hmac::Context::with_key(&self.0);
        hash.update(context.as_ref());
        hash.update(bytes);
        let mut short = [0; 16];
        short.copy_from_slice(&hash.sign().as_ref()[..16]);
        short
    }

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
