//! Parses certificate requests in PKCS#10.
//!
//! Source: `ParseCertificateRequest` and `CheckSignature` of Go's `crypto/x509`.

use super::der::{self, BIT_STRING, CONTEXT_0, INTEGER, Reader, SEQUENCE};
use super::keys::{Algorithm, Identifier, Key};
use super::{extensions, pem, signature, subject};

/// A request that could be read.
#[derive(Debug)]
pub(super) struct Request<'a> {
    /// The organizations of the subject, which are groups of a user.
    pub(super) organizations: Vec<String>,
    key: Key<'a>,
    algorithm: Algorithm,
    signed: &'a [u8],
    signature: &'a [u8],
}

/// Returns the data of a request in the form of PEM.
pub(super) fn data(text: &str) -> Result<Vec<u8>, String> {
    let block = pem::first(text).filter(|(block, _)| block.kind == "CERTIFICATE REQUEST");
    let (block, _) = block.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    Ok(block.data)
}

impl<'a> Request<'a> {
    pub(super) fn read(data: &'a [u8]) -> Result<Self, String> {
        let mut outer = Reader::new(data);
        let request = outer.element_of(SEQUENCE, "certificateRequest")?;
        let mut members = Reader::new(request.content);
        let signed = members.element_of(SEQUENCE, "tbsCertificateRequest")?;
        let parts = signed_parts(signed.content)?;
        let algorithm = Identifier::read(&mut members)?;
        let signature = members.element_of(BIT_STRING, "BitString")?;
        let signature = der::bits(signature.content)?;
        if !outer.is_done() {
            return Err(der::syntax("trailing data"));
        }
        // In this order, which decides which of several faults is reported.
        let key = parts.identifier.key(parts.key)?;
        let organizations = subject::organizations(parts.subject)?;
        extensions::check(parts.attributes)?;
        Ok(Self {
            organizations,
            key,
            algorithm: algorithm.algorithm(),
            signed: signed.whole,
            signature,
        })
    }

    /// Checks that who has the key has signed the request.
    pub(super) fn check_signature(&self) -> Result<(), String> {
        let unimplemented = "x509: cannot verify signature: algorithm unimplemented";
        let wanted = match self.algorithm {
            Algorithm::Other => return Err(unimplemented.into()),
            Algorithm::RsaMd5 => {
                return Err("x509: cannot verify signature: insecure algorithm MD5-RSA".into());
            }
            Algorithm::Rsa(_) | Algorithm::RsaPss(_) => "RSA",
            Algorithm::Ecdsa(_) => "ECDSA",
            Algorithm::Ed25519 => "Ed25519",
        };
        let (kind, found, failure) = match self.key {
            Key::Rsa(..) => ("RSA", "*rsa.PublicKey", "crypto/rsa: verification error"),
            Key::Ecdsa(..) => (
                "ECDSA",
                "*ecdsa.PublicKey",
                "x509: ECDSA verification failure",
            ),
            Key::Ed25519(_) => (
                "Ed25519",
                "ed25519.PublicKey",
                "x509: Ed25519 verification failure",
            ),
            Key::Other => return Err(unimplemented.into()),
        };
        if wanted != kind {
            return Err(format!(
                "x509: signature algorithm specifies an {wanted} public key, but have public key of type {found}"
            ));
        }
        let fits = signature::fits(self.algorithm, self.key, self.signed, self.signature);
        if fits.unwrap_or(true) {
            Ok(())
        } else {
            Err(failure.into())
        }
    }
}

/// The signed part of a request.
struct Signed<'a> {
    subject: &'a [u8],
    identifier: Identifier<'a>,
    key: &'a [u8],
    attributes: &'a [u8],
}

fn signed_parts(signed: &[u8]) -> Result<Signed<'_>, String> {
    let mut members = Reader::new(signed);
    let version = members.element_of(INTEGER, "int")?;
    der::check_integer(version.content)?;
    let subject = members.any()?;
    let key = members.element_of(SEQUENCE, "publicKeyInfo")?;
    let mut key = Reader::new(key.content);
    let identifier = Identifier::read(&mut key)?;
    let bits = key.element_of(BIT_STRING, "BitString")?;
    let key = der::bits(bits.content)?;
    let all = members.element_of(CONTEXT_0, "")?.content;
    let mut attributes = Reader::new(all);
    while !attributes.is_done() {
        attributes.any()?;
    }
    Ok(Signed {
        subject: subject.whole,
        identifier,
        key,
        attributes: all,
    })
}
