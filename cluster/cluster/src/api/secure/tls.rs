//! TLS in front of HTTP.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

/// The time a client may take for its part of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The TLS settings of a listener, or none.
#[derive(Clone)]
pub(crate) struct ServingTls {
    identity: Option<Identity>,
}

/// The certificate that the server presents.
#[derive(Clone)]
pub(super) enum Identity {
    /// It is still to be made.
    Generated,
    ServingCertificate(ServingCertificate),
}

/// All in PEM.
#[derive(Clone)]
pub(super) struct ServingCertificate {
    pub(super) certificates: String,
    pub(super) key: String,
    /// The certificate authority that clients have to trust.
    pub(super) authority: String,
}

/// Accepts connections, with the server's TLS handshake if they are encrypted.
#[derive(Clone)]
pub(crate) struct Acceptor {
    tls: Option<TlsAcceptor>,
}

impl ServingTls {
    pub(crate) fn none() -> Self {
        Self { identity: None }
    }

    pub(crate) fn new(certificates: String, key: String) -> Self {
        Self {
            identity: Some(Identity::ServingCertificate(ServingCertificate {
                authority: certificates.clone(),
                certificates,
                key,
            })),
        }
    }

    /// Uses an authority and a certificate that are generated at the start.
    pub(crate) fn generated() -> Self {
        Self {
            identity: Some(Identity::Generated),
        }
    }

    /// Generates the certificate if it is to be; it is valid for the address too.
    pub(crate) fn ready(self, address: Option<IpAddr>) -> io::Result<Self> {
        match self.identity {
            Some(Identity::Generated) => Ok(Self {
                identity: Some(
                    super::generate::identity(address).map_err(|error| invalid(&error))?,
                ),
            }),
            _ => Ok(self),
        }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        match self.identity {
            Some(_) => "https",
            None => "http",
        }
    }

    /// Returns the certificates a client has to trust, in PEM.
    pub(crate) fn authority(&self) -> Option<&str> {
        match self.identity.as_ref()? {
            Identity::ServingCertificate(certificate) => Some(&certificate.authority),
            Identity::Generated => None,
        }
    }

    pub(crate) fn acceptor(&self) -> io::Result<Acceptor> {
        let tls = match &self.identity {
            Some(Identity::ServingCertificate(certificate)) => Some(certificate.acceptor()?),
            Some(Identity::Generated) | None => None,
        };
        Ok(Acceptor { tls })
    }
}

impl ServingCertificate {
    fn acceptor(&self) -> io::Result<TlsAcceptor> {
        let unreadable = |error: pem::Error| invalid(&error);
        let certificates = CertificateDer::pem_slice_iter(self.certificates.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(unreadable)?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(unreadable)?;
        // With its own provider, so that the process needs no default, which another library might set.
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| {
                config
                    .with_no_client_auth()
                    .with_single_cert(certificates, key)
            })
            .map_err(|error| invalid(&error))?;
        // In the order of preference: of what a client offers the first of these is taken.
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn invalid(reason: &dyn fmt::Display) -> io::Error {
    let message = format!("certificate and key cannot be used: {reason}");
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

impl Acceptor {
    pub(crate) async fn accept<S>(&self, stream: S) -> io::Result<Either<S, TlsStream<S>>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Some(tls) = &self.tls else {
            return Ok(Either::Left(stream));
        };
        let handshake = time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await;
        Ok(Either::Right(handshake??))
    }
}

impl fmt::Debug for ServingTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme())
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = self.tls.is_some();
        f.debug_struct("Acceptor").field("tls", &tls).finish()
    }
}
