//! Checking signatures.

use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};

use super::keys::{Algorithm, Hash, Key};

/// Below it, ring has neither RSA with SHA-384 nor RSA-PSS.
const LARGE: usize = 256;

/// Returns whether a signature fits; `None` if that cannot be checked.
pub(super) fn fits(
    algorithm: Algorithm,
    key: Key<'_>,
    signed: &[u8],
    signature: &[u8],
) -> Option<bool> {
    let (algorithm, key): (&dyn VerificationAlgorithm, &[u8]) = match (algorithm, key) {
        // Go takes SHA-1 for requests, which only their sender has reason to forge.
        (Algorithm::Rsa(Hash::Sha1), Key::Rsa(key, _)) => (
            &signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
            key,
        ),
        (Algorithm::Rsa(Hash::Sha256), Key::Rsa(key, _)) => (
            &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
            key,
        ),
        (Algorithm::Rsa(Hash::Sha384), Key::Rsa(key, LARGE..)) => {
            (&signature::RSA_PKCS1_2048_8192_SHA384, key)
        }
        (Algorithm::Rsa(Hash::Sha512), Key::Rsa(key, _)) => (
            &signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
            key,
        ),
        (Algorithm::RsaPss(hash), Key::Rsa(key, LARGE..)) => (pss(hash)?, key),
        (Algorithm::Ecdsa(Hash::Sha256), Key::Ecdsa(key, 32)) => {
            (&signature::ECDSA_P256_SHA256_ASN1, key)
        }
        (Algorithm::Ecdsa(Hash::Sha384), Key::Ecdsa(key, 32)) => {
            (&signature::ECDSA_P256_SHA384_ASN1, key)
        }
        (Algorithm::Ecdsa(Hash::Sha256), Key::Ecdsa(key, 48)) => {
            (&signature::ECDSA_P384_SHA256_ASN1, key)
        }
        (Algorithm::Ecdsa(Hash::Sha384), Key::Ecdsa(key, 48)) => {
            (&signature::ECDSA_P384_SHA384_ASN1, key)
        }
        (Algorithm::Ed25519, Key::Ed25519(key)) => (&signature::ED25519, key),
        _ => return None,
    };
    let key = UnparsedPublicKey::new(algorithm, key);
    Some(key.verify(signed, signature).is_ok())
}

fn pss(hash: Hash) -> Option<&'static dyn VerificationAlgorithm> {
    match hash {
        Hash::Sha1 => None,
        Hash::Sha256 => Some(&signature::RSA_PSS_2048_8192_SHA256),
        Hash::Sha384 => Some(&signature::RSA_PSS_2048_8192_SHA384),
        Hash::Sha512 => Some(&signature::RSA_PSS_2048_8192_SHA512),
    }
}
