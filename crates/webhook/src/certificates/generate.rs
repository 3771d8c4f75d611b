//! Generates an authority and a certificate that it has signed.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use serde::{Deserialize, Serialize};

use super::error::CertificateError;

/// How far in the past the validity begins, for clients whose clocks are slow.
const SLOW_CLOCKS: Duration = Duration::from_secs(10 * 60);

/// A certificate with its key and its authority, in PEM.
///
/// The key of the authority is discarded after it has signed this certificate. So no one who reads the Secret can issue
/// others.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Generated {
    pub(super) certificate: String,
    pub(super) key: String,
    pub(super) authority: String,
    pub(super) names: Vec<String>,
    pub(super) made: Timestamp,
    pub(super) expires: Timestamp,
}

impl Generated {
    pub(super) fn new(
        names: &[String],
        now: Timestamp,
        validity: Duration,
    ) -> Result<Self, CertificateError> {
        let expires = now.saturating_add(validity).unwrap_or(Timestamp::MAX);
        Self::generate(names, now, expires).map_err(|error| CertificateError::Generate {
            names: names.join(", "),
            reason: error.to_string(),
        })
    }

    fn generate(
        names: &[String],
        now: Timestamp,
        expires: Timestamp,
    ) -> Result<Self, rcgen::Error> {
        // A path length of zero: the authority can sign this certificate, but no further authorities.
        let mut authority = CertificateParams::default();
        // The time in the name distinguishes the authorities of a bundle.
        let name = format!("lariat webhooks {}", now.as_second());
        authority.distinguished_name.push(DnType::CommonName, name);
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        valid(&mut authority, now, expires);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

        let mut server = CertificateParams::new(names.to_vec())?;
        let name = names.first().map_or("webhooks", String::as_str);
        // A common name has at most 64 characters. Clients check the alternative names only.
        if name.len() <= 64 {
            server.distinguished_name.push(DnType::CommonName, name);
        }
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        valid(&mut server, now, expires);
        // A new key for each certificate, so that a leaked one ends with its certificate.
        let key = KeyPair::generate()?;
        Ok(Self {
            certificate: server.signed_by(&key, &authority)?.pem(),
            key: key.serialize_pem(),
            authority: authority.pem(),
            names: names.to_vec(),
            made: now,
            expires,
        })
    }
}

/// Sets the validity of a certificate.
fn valid(certificate: &mut CertificateParams, from: Timestamp, until: Timestamp) {
    let since_epoch =
        |time: Timestamp| Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default());
    let epoch = date_time_ymd(1970, 1, 1);
    certificate.not_before = epoch + since_epoch(from).saturating_sub(SLOW_CLOCKS);
    certificate.not_after = epoch + since_epoch(until);
}
