//! Verifies the certificate of a webhook's server.

use std::io;
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// Trusts the authorities of a bundle, and server certificates in the bundle.
///
/// Go takes such a certificate though its issuer is not in the bundle, as with the webhooks of controller-runtime's
/// `envtest`, or though it is marked as that of an authority, as `openssl req -x509` makes them.
#[derive(Debug)]
struct Verifier {
    trusted: Vec<CertificateDer<'static>>,
    by_authority: Arc<WebPkiServerVerifier>,
}

/// The certificates of a bundle.
#[derive(Debug)]
pub(super) struct Bundle {
    certificates: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
}

impl Bundle {
    /// Reads a bundle in PEM; an empty one has no certificates.
    ///
    /// # Errors
    ///
    /// The bundle is not empty, and has no certificate of an authority.
    pub(super) fn read(bundle: &[u8]) -> Result<Self, String> {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(bundle).flatten().collect();
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            // What is no certificate is trusted by no one.
            let _ = roots.add(certificate.clone());
        }
        if roots.is_empty() && !bundle.is_empty() {
            let reason = unusable(bundle, !certificates.is_empty());
            return Err(format!("unable to load root certificates: {reason}"));
        }
        Ok(Self {
            certificates,
            roots,
        })
    }
}

/// Makes the configuration of a client that trusts a bundle.
pub(super) fn config(bundle: Bundle) -> Result<ClientConfig, String> {
    let Bundle {
        certificates: trusted,
        roots,
    } = bundle;
    if roots.is_empty() {
        return Err(UNKNOWN.to_owned());
    }
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let by_authority =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| error.to_string())?;
    let verifier = Arc::new(Verifier {
        trusted,
        by_authority,
    });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    // `exchange` speaks HTTP/1.1 only.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Returns the reason for which a bundle has no authority.
///
/// Source: `createErrorParsingCAData` in `k8s.io/client-go/transport`.
fn unusable(bundle: &[u8], has_certificates: bool) -> &'static str {
    const BEGIN: &[u8] = b"-----BEGIN ";
    if has_certificates {
        "failed to parse certificate: x509: malformed certificate"
    } else if bundle.windows(BEGIN.len()).any(|text| text == BEGIN) {
        "no valid certificate authority data seen"
    } else {
        "unable to parse bytes as PEM block"
    }
}

/// Returns whether a certificate failed because of its signer, or because it is marked as that of an authority.
///
/// webpki looks at the time before that, and at the name after it.
fn is_about_issuer(verified: &Result<ServerCertVerified, Error>) -> bool {
    // The check of the mark has no variant of its own in `CertificateError`.
    matches!(
        verified,
        Err(Error::InvalidCertificate(
            CertificateError::UnknownIssuer
                | CertificateError::BadSignature
                | CertificateError::Other(_)
        ))
    )
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let is_trusted = self.trusted.iter().any(|each| each == certificate);
        // It needs no chain then, so none can be at fault.
        let chain = if is_trusted { &[] } else { chain };
        let verified = self
            .by_authority
            .verify_server_cert(certificate, chain, name, stapled, now);
        if is_trusted && is_about_issuer(&verified) {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

const UNKNOWN: &str =
    "tls: failed to verify certificate: x509: certificate signed by unknown authority";

/// Returns Go's error for a failed handshake.
pub(super) fn describe(error: &io::Error, host: &str) -> String {
    let inner = error.get_ref().and_then(|error| error.downcast_ref());
    let failed = |reason: &str| format!("tls: failed to verify certificate: x509: {reason}");
    match inner {
        Some(Error::InvalidCertificate(reason)) => match reason {
            // An authority of the same name does not make it trusted.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => UNKNOWN.to_owned(),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                failed("certificate has expired or is not yet valid")
            }
            CertificateError::NotValidForName => {
                failed(&format!("certificate is not valid for {host}"))
            }
            CertificateError::NotValidForNameContext { presented, .. } => {
                failed(&misnamed(presented, host))
            }
            other => failed(&other.to_string()),
        },
        Some(Error::InvalidMessage(_)) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        Some(other) => format!("remote error: tls: {other}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => error.to_string(),
    }
}

/// Returns the error of a certificate for other names: `DnsName("a")`, `IpAddress(127.0.0.1)`.
fn misnamed(presented: &[String], host: &str) -> String {
    let is_address = host
        .trim_matches(['[', ']'])
        .parse::<std::net::IpAddr>()
        .is_ok();
    let wanted = if is_address { "IpAddress" } else { "DnsName" };
    let names = presented.iter().filter(|name| name.starts_with(wanted));
    let names = names.filter_map(|name| {
        let (_, name) = name.split_once('(')?;
        Some(name.trim_end_matches(')').trim_matches('"'))
    });
    let names: Vec<&str> = names.collect();
    match (&names[..], is_address) {
        ([], true) => {
            format!("cannot validate certificate for {host} because it doesn't contain any IP SANs")
        }
        ([], false) => {
            format!("certificate is not valid for any names, but wanted to match {host}")
        }
        (names, _) => format!("certificate is valid for {}, not {host}", names.join(", ")),
    }
}
