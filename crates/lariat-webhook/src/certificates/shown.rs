//! The certificate that the server uses now.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;

use super::pair::Pair;

/// The certificate that the server uses now, with the authorities of its clients.
pub(crate) struct Shown {
    key: RwLock<Arc<CertifiedKey>>,
    authority: watch::Sender<Option<String>>,
    /// The authorities that were injected last.
    injected: RwLock<Option<String>>,
    /// The reason why the certificate could not be replaced at the last check, if any.
    problem: RwLock<Option<String>>,
}

impl Shown {
    pub(super) fn new(pair: Pair) -> Arc<Self> {
        Arc::new(Self {
            key: RwLock::new(pair.key),
            authority: watch::Sender::new(pair.authority),
            injected: RwLock::new(None),
            problem: RwLock::new(None),
        })
    }

    /// Replaces the certificate.
    ///
    /// Handshakes in progress finish with the old one, and existing connections are kept.
    pub(super) fn replace(&self, pair: Pair) {
        *self.key.write() = pair.key;
        // An equal authority is no news: it would have all configurations applied again.
        self.authority.send_if_modified(|authority| {
            let is_news = *authority != pair.authority;
            *authority = pair.authority;
            is_news
        });
        *self.problem.write() = None;
    }

    /// Records why the certificate could not be replaced; returns whether that is new.
    pub(super) fn failed(&self, problem: String) -> bool {
        let mut last = self.problem.write();
        let is_news = last.as_ref() != Some(&problem);
        *last = Some(problem);
        is_news
    }

    /// Records that the served certificate is the newest one.
    pub(super) fn is_current(&self) {
        *self.problem.write() = None;
    }

    /// Returns the reason why the certificate could not be replaced, if any.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.read().clone()
    }

    /// Returns the authorities in PEM, as a channel that reports changes.
    pub(crate) fn authority(&self) -> watch::Receiver<Option<String>> {
        self.authority.subscribe()
    }

    /// Records that all configurations have these authorities.
    pub(crate) fn was_injected(&self, authority: Option<String>) {
        *self.injected.write() = authority;
    }

    /// Returns the authorities that were injected last.
    pub(super) fn injected(&self) -> Option<String> {
        self.injected.read().clone()
    }

    /// Returns the TLS configuration of a server that uses this certificate.
    pub(crate) fn config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, rustls::Error> {
        // Given explicitly, because rustls panics if it cannot choose one of several providers itself.
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions()?;
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<Self>::clone(self);
        let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
        // API servers offer HTTP/2 as well, which the server does not speak.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // Called in each handshake. The read lock is held only to clone the pointer.
        Some(Arc::clone(&self.key.read()))
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown")
            .field("problem", &*self.problem.read())
            .finish_non_exhaustive()
    }
}
