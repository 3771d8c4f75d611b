//! A certificate with its key, and whom it can be shown to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError as Refusal, RootCertStore};

use super::error::CertificateError;
use super::validity::Validity;

/// A certificate with its key.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(super) key: Arc<CertifiedKey>,
    validity: Validity,
}

impl Pair {
    /// Reads certificate and key in PEM, and checks that they belong together.
    pub(super) fn read(
        from: &str,
        certificates: &[u8],
        key: &[u8],
    ) -> Result<Self, CertificateError> {
        let unusable = |reason: &dyn fmt::Display| CertificateError::Unusable {
            from: from.to_owned(),
            reason: reason.to_string(),
        };
        let chain = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unusable(&error))?;
        let Some(first) = chain.first() else {
            return Err(unusable(&"it contains no certificate"));
        };
        let validity = Validity::read(first);
        let validity = validity.ok_or_else(|| unusable(&"its validity cannot be read"))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| unusable(&error))?;
        // Fails if the key does not belong to the certificate, as when the two files are read during a replacement.
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map_err(|error| unusable(&error))?;
        Ok(Self {
            key: Arc::new(key),
            validity,
        })
    }

    /// Returns whether clients that call this name accept the certificate, if they trust its authority.
    pub(super) fn covers(&self, name: &ServerName<'_>) -> bool {
        let parsed = self.parsed();
        parsed.is_some_and(|parsed| verify_server_name(&parsed, name).is_ok())
    }

    /// Checks that clients can accept the certificate now, if they trust its authority.
    pub(super) fn check(
        &self,
        name: Option<&ServerName<'_>>,
        now: Timestamp,
    ) -> Result<(), String> {
        if !self.validity.contains(now) {
            return Err("the certificate has expired, or is not valid yet".to_owned());
        }
        match name {
            Some(name) if !self.covers(name) => Err(format!(
                "the certificate does not cover {}, where API servers call the webhooks",
                name.to_str()
            )),
            _ => Ok(()),
        }
    }

    /// Checks that clients that trust these authorities, in PEM, trust the certificate now.
    pub(super) fn check_trust(&self, authority: &str, now: Timestamp) -> Result<(), String> {
        let authorities = CertificateDer::pem_slice_iter(authority.as_bytes());
        let authorities: Vec<_> = authorities.filter_map(Result::ok).collect();
        // As in Go, a certificate that is trusted itself needs no authority.
        if self
            .key
            .cert
            .first()
            .is_some_and(|it| authorities.contains(it))
        {
            return Ok(());
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities);
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let parsed = self.parsed().ok_or("the certificate cannot be read")?;
        let intermediates = self.key.cert.get(1..).unwrap_or_default();
        let all = ring::default_provider()
            .signature_verification_algorithms
            .all;
        let verified =
            verify_server_cert_signed_by_trust_anchor(&parsed, &roots, intermediates, now, all);
        match verified {
            Err(rustls::Error::InvalidCertificate(
                error @ (Refusal::UnknownIssuer | Refusal::BadSignature),
            )) => Err(format!(
                "the authority does not vouch for the certificate: {error}"
            )),
            // About other things API servers are less strict than this check.
            _ => Ok(()),
        }
    }

    fn parsed(&self) -> Option<ParsedCertificate<'_>> {
        ParsedCertificate::try_from(self.key.cert.first()?).ok()
    }
}
