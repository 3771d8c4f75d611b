//! The certificate that the server shows now.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;

use super::pair::Pair;

/// The certificate that the server shows now, and the authorities that its clients have to trust.
pub(crate) struct Shown {
    key: RwLock<Arc<CertifiedKey>>,
    authority: watch::Sender<Option<String>>,
    /// The authorities that were injected last.
    injected: RwLock<Option<String>>,
    /// Why the certificate could not be replaced the last time; none if there was nothing to replace, or it was.
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

    /// Shows another certificate; handshakes that are going on end with the old one.
    pub(super) fn replace(&self, pair: Pair) {
        *self.key.write() = pair.key;
        self.authority.send_if_modified(|authority| {
            let is_news = *authority != pair.authority;
            *authority = pair.authority;
            is_news
        });
        *self.problem.write() = None;
    }

    /// Remembers that the certificate could not be replaced; returns whether that is news.
    pub(super) fn failed(&self, problem: String) -> bool {
        let mut last = self.problem.write();
        let is_news = last.as_ref() != Some(&problem);
        *last = Some(problem);
        is_news
    }

    /// Forgets the last problem: what is shown is what there is.
    pub(super) fn is_current(&self) {
        *self.problem.write() = None;
    }

    /// Returns why the certificate could not be replaced.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.read().clone()
    }

    /// Returns the authorities in PEM, and their changes.
    pub(crate) fn authority(&self) -> watch::Receiver<Option<String>> {
        self.authority.subscribe()
    }

    /// Notes that all configurations have authorities.
    pub(crate) fn was_injected(&self, authority: Option<String>) {
        *self.injected.write() = authority;
    }

    /// Returns the authorities that were injected last.
    pub(super) fn injected(&self) -> Option<String> {
        self.injected.read().clone()
    }

    /// Returns the settings of a server that shows it.
    pub(crate) fn config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions()?;
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<Self>::clone(self);
        let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
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
