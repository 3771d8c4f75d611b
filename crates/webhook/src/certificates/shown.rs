//! The certificates that the server uses now.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;

use super::keeper::now;
use super::pair::Pair;

/// The certificates that a server uses, with the authorities that its clients must trust.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) first: Pair,
    /// Certificates for names that those before them lack.
    pub(super) others: Vec<Pair>,
    /// The authorities in PEM; `None` if another program injects them.
    pub(super) authority: Option<String>,
}

/// The certificates that the server uses now, with the authorities of its clients.
pub(crate) struct Shown {
    served: RwLock<Served>,
    /// The name that API servers call; `None` if another program installs the configurations.
    endpoint: Option<ServerName<'static>>,
    authority: watch::Sender<Option<String>>,
    /// The authorities that were injected last.
    injected: RwLock<Option<String>>,
}

impl Served {
    /// Returns the certificate for clients that call this name: the first that covers it, or else the first.
    fn pick(&self, name: Option<&ServerName<'_>>) -> &Pair {
        let mut all = [&self.first].into_iter().chain(&self.others);
        let covering = name.and_then(|name| all.find(|pair| pair.covers(name)));
        covering.unwrap_or(&self.first)
    }
}

impl Shown {
    pub(super) fn new(served: Served, endpoint: Option<ServerName<'static>>) -> Arc<Self> {
        Arc::new(Self {
            authority: watch::Sender::new(served.authority.clone()),
            served: RwLock::new(served),
            endpoint,
            injected: RwLock::new(None),
        })
    }

    /// Replaces the certificates.
    ///
    /// Handshakes in progress finish with the old ones, and existing connections are kept.
    pub(super) fn replace(&self, served: Served) {
        let new = served.authority.clone();
        *self.served.write() = served;
        // An equal authority is no news: it would have all configurations applied again.
        self.authority.send_if_modified(|authority| {
            let is_news = *authority != new;
            *authority = new;
            is_news
        });
    }

    /// Checks that API servers that trust its authority accept the certificate now.
    ///
    /// It must be valid, and cover the endpoint if that is known.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (served, name) = (self.served.read(), self.endpoint.as_ref());
        served.pick(name).check(name, now())
    }

    /// Checks that API servers accept the certificate now if they get these authorities.
    pub(crate) fn check_with(&self, authority: Option<&str>) -> Result<(), String> {
        let (served, name) = (self.served.read(), self.endpoint.as_ref());
        let pair = served.pick(name);
        pair.check(name, now())?;
        // Without an authority another program injects it.
        authority.map_or(Ok(()), |authority| pair.check_trust(authority, now()))
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

    /// Returns the endpoint's address, which clients that send no name call.
    ///
    /// `None` until the configurations have it: before that, nobody calls it, or trusts a certificate made for it.
    fn called_address(&self) -> Option<&ServerName<'static>> {
        let is_address = |name: &&ServerName<'_>| matches!(name, ServerName::IpAddress(_));
        let address = self.endpoint.as_ref().filter(is_address)?;
        self.injected.read().is_some().then_some(address)
    }

    /// Returns the TLS configuration of a server that uses these certificates.
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
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let called = hello.server_name().map(ServerName::try_from);
        let called = called.and_then(Result::ok);
        let name = called.as_ref().or_else(|| self.called_address());
        // Called in each handshake. The read lock is held only to clone a pointer.
        Some(Arc::clone(&self.served.read().pick(name).key))
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
