//! Public keys, and the algorithms of signatures.
//!
//! Source: `parsePublicKey` and `signatureAlgorithmDetails` of Go's `crypto/x509`.

use super::der::{self, OBJECT_IDENTIFIER, Reader, SEQUENCE, Tag};

/// Object identifiers, without their header.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const P224: &[u8] = &[0x2b, 0x81, 4, 0, 33];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const P384: &[u8] = &[0x2b, 0x81, 4, 0, 34];
const P521: &[u8] = &[0x2b, 0x81, 4, 0, 35];

const MGF1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 8];
/// The common prefix of the identifiers of hash functions.
const SHA2: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2];

const NULL: [u8; 2] = [5, 0];
const INTEGER: Tag = der::INTEGER;

/// A public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key<'a> {
    /// An `RSAPublicKey`, and how many bytes the modulus has.
    Rsa(&'a [u8], usize),
    /// A point in the uncompressed form, and how many bytes a coordinate has.
    Ecdsa(&'a [u8], usize),
    Ed25519(&'a [u8]),
    Other,
}

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

/// The signature algorithm of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rsa(Hash),
    RsaMd5,
    RsaPss(Hash),
    Ecdsa(Hash),
    Ed25519,
    Other,
}

/// An algorithm's identifier and its parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identifier<'a> {
    pub(super) name: &'a [u8],
    pub(super) parameters: &'a [u8],
}

impl<'a> Identifier<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, String> {
        let mut members = Reader::new(reader.element_of(SEQUENCE, "")?.content);
        let name = members.element_of(OBJECT_IDENTIFIER, "ObjectIdentifier")?;
        der::check_identifier(name.content)?;
        let parameters = if members.is_done() {
            &[]
        } else {
            members.any()?.whole
        };
        Ok(Self {
            name: name.content,
            parameters,
        })
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        match self.name {
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, last] => match last {
                4 => Algorithm::RsaMd5,
                5 => Algorithm::Rsa(Hash::Sha1),
                10 => pss(self.parameters).map_or(Algorithm::Other, Algorithm::RsaPss),
                11 => Algorithm::Rsa(Hash::Sha256),
                12 => Algorithm::Rsa(Hash::Sha384),
                13 => Algorithm::Rsa(Hash::Sha512),
                _ => Algorithm::Other,
            },
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1] => Algorithm::Ecdsa(Hash::Sha1),
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, last] => match last {
                2 => Algorithm::Ecdsa(Hash::Sha256),
                3 => Algorithm::Ecdsa(Hash::Sha384),
                4 => Algorithm::Ecdsa(Hash::Sha512),
                _ => Algorithm::Other,
            },
            name if name == ED25519 => Algorithm::Ed25519,
            _ => Algorithm::Other,
        }
    }

    /// Reads a key of this algorithm.
    pub(super) fn key(&self, bytes: &'a [u8]) -> Result<Key<'a>, &'static str> {
        match self.name {
            RSA => rsa(self.parameters, bytes),
            ECDSA => ecdsa(self.parameters, bytes),
            ED25519 if !self.parameters.is_empty() => {
                Err("x509: Ed25519 key encoded with illegal parameters")
            }
            ED25519 if bytes.len() != 32 => Err("x509: wrong Ed25519 public key size"),
            ED25519 => Ok(Key::Ed25519(bytes)),
            _ => Ok(Key::Other),
        }
    }
}

/// Returns the hash of a signature by RSA-PSS, if Go takes its parameters.
// `getSignatureAlgorithmFromAI`: one hash for everything, whose length is that of the salt, and the usual trailer.
fn pss(parameters: &[u8]) -> Option<Hash> {
    let mut outer = Reader::new(parameters);
    let mut members = Reader::new(outer.element_of(SEQUENCE, "").ok()?.content);
    let mut explicit = |number| {
        let member = members.optional(Tag::context(number, true)).ok()?;
        member.map(|member| Reader::new(member.content))
    };
    let hash = Identifier::read(&mut explicit(0)?).ok()?;
    let generator = Identifier::read(&mut explicit(1)?).ok()?;
    let salt = explicit(2)?.element_of(INTEGER, "").ok()?;
    let trailer = match explicit(3) {
        Some(mut trailer) => trailer.element_of(INTEGER, "").ok()?.content,
        None => &[1],
    };
    let inner = Identifier::read(&mut Reader::new(generator.parameters)).ok()?;
    let is_plain = |parameters: &[u8]| parameters.is_empty() || parameters == NULL;
    let is_usual = is_plain(hash.parameters)
        && is_plain(inner.parameters)
        && generator.name == MGF1
        && inner.name == hash.name
        && trailer == [1];
    let (known, [last]) = hash.name.split_last_chunk()?;
    match (last, salt.content) {
        (1, [32]) if is_usual && known == SHA2 => Some(Hash::Sha256),
        (2, [48]) if is_usual && known == SHA2 => Some(Hash::Sha384),
        (3, [64]) if is_usual && known == SHA2 => Some(Hash::Sha512),
        _ => None,
    }
}

fn rsa<'a>(parameters: &[u8], bytes: &'a [u8]) -> Result<Key<'a>, &'static str> {
    if parameters != NULL {
        return Err("x509: RSA key missing NULL parameters");
    }
    let members = Reader::new(bytes).element_of(SEQUENCE, "");
    let members = members.map_err(|_| "x509: invalid RSA public key")?;
    let mut members = Reader::new(members.content);
    let mut integer = || {
        let element = members.element_of(INTEGER, "").ok()?;
        Some(element.content).filter(|content| !content.is_empty())
    };
    let modulus = integer().ok_or("x509: invalid RSA modulus")?;
    let exponent = integer().ok_or("x509: invalid RSA public exponent")?;
    let is_positive = |integer: &[u8]| integer[0] & 0x80 == 0 && integer != [0];
    if !is_positive(modulus) {
        return Err("x509: RSA modulus is not a positive number");
    }
    if !is_positive(exponent) {
        return Err("x509: RSA public exponent is not a positive number");
    }
    let sign = usize::from(modulus[0] == 0);
    Ok(Key::Rsa(bytes, modulus.len() - sign))
}

fn ecdsa<'a>(parameters: &[u8], bytes: &'a [u8]) -> Result<Key<'a>, &'static str> {
    let curve = Reader::new(parameters).element_of(OBJECT_IDENTIFIER, "");
    let curve = curve.map_err(|_| "x509: invalid ECDSA parameters")?;
    let length = match curve.content {
        P224 => 28,
        P256 => 32,
        P384 => 48,
        P521 => 66,
        _ => return Err("x509: unsupported elliptic curve"),
    };
    match bytes {
        // Whether the point is on the curve, the check of the signature finds out.
        [4, point @ ..] if point.len() == 2 * length => Ok(Key::Ecdsa(bytes, length)),
        [4, ..] => Err(match length {
            28 => "invalid P224 point encoding",
            32 => "invalid P256 point encoding",
            48 => "invalid P384 point encoding",
            _ => "invalid P521 point encoding",
        }),
        _ => Err("ecdsa: invalid uncompressed public key"),
    }
}
