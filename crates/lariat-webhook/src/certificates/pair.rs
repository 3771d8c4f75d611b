//! A certificate with its key, and the authorities that clients must trust.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::error::CertificateError;

/// A certificate with its key, and the authorities that clients must trust.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) key: Arc<CertifiedKey>,
    /// The authorities in PEM; `None` if another program injects them.
    pub(crate) authority: Option<String>,
}

impl Pair {
    /// Reads certificate and key in PEM, and checks that they belong together.
    pub(super) fn read(
        from: &str,
        certificates: &[u8],
        key: &[u8],
        authority: Option<String>,
    ) -> Result<Self, CertificateError> {
        let unusable = |reason: &dyn fmt::Display| CertificateError::Unusable {
            from: from.to_owned(),
            reason: reason.to_string(),
        };
        let chain = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unusable(&error))?;
        if chain.is_empty() {
            return Err(unusable(&"it contains no certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| unusable(&error))?;
        // Fails if the key does not belong to the certificate, as when the two files are read during a replacement.
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map_err(|error| unusable(&error))?;
        Ok(Self {
            key: Arc::new(key),
            authority,
        })
    }
}
