//! The key that signs tokens, and the documents by which others check them.

use std::{fmt, io};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair,
    Ed25519KeyPair, KeyPair, UnparsedPublicKey,
};
use sha2::{Digest, Sha256};

use crate::random::Random;

/// The bytes before the point in the DER form of a public key.
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const ED25519_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// Signs tokens, and verifies its signatures.
pub(crate) struct Signer {
    key: Key,
    id: String,
}

enum Key {
    P256(Box<EcdsaKeyPair>),
    /// For clusters with a seed: its signatures have no random part.
    Ed25519(Box<Ed25519KeyPair>),
}

impl Signer {
    /// Makes a key, as PKCS#8.
    ///
    /// # Errors
    ///
    /// The operating system has no random numbers.
    pub(crate) fn generate() -> io::Result<Vec<u8>> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new());
        let key = key.map_err(|_| io::Error::other("no random numbers for a key"))?;
        Ok(key.as_ref().to_vec())
    }

    /// Uses a key that was [generated](Self::generate).
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(crate) fn new(key: &[u8]) -> io::Result<Self> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, key, &SystemRandom::new());
        // The reason is one of ring's words, never a part of the key.
        let key =
            key.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        Ok(Self::of(Key::P256(Box::new(key))))
    }

    /// Makes the same key of the same secret.
    ///
    /// # Errors
    ///
    /// None; a build without signatures has the same function.
    pub(crate) fn repeatable(secret: &str) -> io::Result<Self> {
        let key = Ed25519KeyPair::from_seed_unchecked(&Sha256::digest(secret));
        let key = key.map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self::of(Key::Ed25519(Box::new(key))))
    }

    fn of(key: Key) -> Self {
        // As keyIDFromPublicKey: it reveals nothing of the key.
        let mut hash = Sha256::new();
        hash.update(match key {
            Key::P256(_) => &P256_PREFIX[..],
            Key::Ed25519(_) => &ED25519_PREFIX[..],
        });
        hash.update(key.public());
        let id = BASE64.encode(hash.finalize());
        Self { key, id }
    }

    /// Returns the name of the algorithm, as in the header of a token.
    pub(crate) fn algorithm(&self) -> &'static str {
        match self.key {
            Key::P256(_) => "ES256",
            Key::Ed25519(_) => "EdDSA",
        }
    }

    /// Returns the name of the key.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns whether it can verify its signatures without a cache of them.
    pub(crate) fn verifies(&self) -> bool {
        true
    }

    /// Signs a text.
    ///
    /// # Errors
    ///
    /// The operating system has no random numbers.
    pub(crate) fn sign(&self, _: &Random, text: &str) -> io::Result<String> {
        Ok(match &self.key {
            Key::P256(key) => {
                let signature = key.sign(&SystemRandom::new(), text.as_bytes());
                let signature =
                    signature.map_err(|_| io::Error::other("no random numbers to sign with"))?;
                BASE64.encode(signature)
            }
            Key::Ed25519(key) => BASE64.encode(key.sign(text.as_bytes())),
        })
    }

    /// Returns whether this key signed a text.
    pub(crate) fn has_signed(&self, text: &str, signature: &[u8]) -> bool {
        let public = self.key.public();
        let checked = match self.key {
            Key::P256(_) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public)
                .verify(text.as_bytes(), signature),
            Key::Ed25519(_) => {
                UnparsedPublicKey::new(&ED25519, public).verify(text.as_bytes(), signature)
            }
        };
        checked.is_ok()
    }

    /// Returns the public key as a set of JSON Web Keys, in the order of Go's members.
    pub(crate) fn key_set(&self) -> Option<String> {
        let (id, alg) = (&self.id, self.algorithm());
        let public = self.key.public();
        let key = match self.key {
            Key::P256(_) => {
                // The point is uncompressed: a byte that says so, and two coordinates.
                let (x, y) = public.get(1..)?.split_at_checked(32)?;
                let (x, y) = (BASE64.encode(x), BASE64.encode(y));
                format!(
                    r#"{{"use":"sig","kty":"EC","kid":"{id}","crv":"P-256","alg":"{alg}","x":"{x}","y":"{y}"}}"#
                )
            }
            Key::Ed25519(_) => {
                let x = BASE64.encode(public);
                format!(
                    r#"{{"use":"sig","kty":"OKP","kid":"{id}","crv":"Ed25519","alg":"{alg}","x":"{x}"}}"#
                )
            }
        };
        Some(format!(r#"{{"keys":[{key}]}}"#))
    }
}

impl Key {
    fn public(&self) -> &[u8] {
        match self {
            Self::P256(key) => key.public_key().as_ref(),
            Self::Ed25519(key) => key.public_key().as_ref(),
        }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The id is public, the key is not.
        f.debug_struct("Signer").field("id", &self.id).finish()
    }
}
