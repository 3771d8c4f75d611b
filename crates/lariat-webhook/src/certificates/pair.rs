//! A certificate with its key, and what clients have to trust.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::error::CertificateError;

/// A certificate with its key, and what clients have to trust.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) key: Arc<CertifiedKey>,
    /// In PEM; none if others inject it.
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
            return Err(unusable(&"there is no certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| unusable(&error))?;
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map_err(|error| unusable(&error))?;
        Ok(Self {
            key: Arc::new(key),
            authority,
        })
    }
}
