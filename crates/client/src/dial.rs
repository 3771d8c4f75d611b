//! Dialing: TCP with keepalive, proxies, TLS.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use kube::Config;
use parking_lot::Mutex;
use tokio::time::{self, Instant};
use tower::{BoxError, Service, ServiceExt};

use crate::socket::{Connector, Offer, Socket};
use crate::tls::Tls;
use crate::url;

/// The TCP keepalive: first probe, interval, number of probes, and longest silence.
///
/// The times are those of the HTTP/2 pings. Keepalive tests the other end of the connection, which may be a proxy that
/// passes nothing on; `liveness` tests what is behind it.
const PROBE_AFTER: Duration = Duration::from_secs(30);
const PROBE_EVERY: Duration = Duration::from_secs(5);
const PROBES: u32 = 3;
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const SILENT_FOR: Duration = Duration::from_secs(45);

/// How long a connection that was opened for HTTP/2 may be used for HTTP/1.1.
const SPARE_FOR: Duration = Duration::from_secs(5);

/// The port of SOCKS proxies without one, as in Go.
const SOCKS_PORT: u16 = 1080;

/// The error of a connection that could not be opened; nothing was sent.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot connect to {url}")]
pub(crate) struct NotConnected {
    pub(crate) url: Uri,
    pub(crate) source: Arc<dyn Error + Send + Sync>,
    /// Whether TLS failed, in most cases because of a certificate.
    pub(crate) is_tls: bool,
}

/// Opens connections to one server.
#[derive(Clone)]
pub(crate) struct Dialer {
    connector: Connector,
    url: Uri,
    timeout: Option<Duration>,
    /// A connection that was opened for HTTP/2, which the server does not support.
    spare: Arc<Mutex<Option<(Socket, Instant)>>>,
}

impl Dialer {
    fn new(config: &Config, connector: Connector) -> Self {
        Self {
            connector,
            url: config.cluster_url.clone(),
            timeout: config.connect_timeout,
            spare: Arc::default(),
        }
    }

    /// Opens a connection.
    pub(crate) async fn dial(&self) -> Result<Socket, NotConnected> {
        let connecting = self.connector.clone().oneshot(self.url.clone());
        let limit = self.timeout.unwrap_or(Duration::MAX);
        let failed = |source: BoxError| NotConnected {
            url: self.url.clone(),
            is_tls: is_tls(&*source),
            source: Arc::from(source),
        };
        match time::timeout(limit, connecting).await {
            Ok(connected) => connected.map_err(failed),
            Err(_) => Err(failed(format!("no connection within {limit:?}").into())),
        }
    }

    pub(crate) fn url(&self) -> &Uri {
        &self.url
    }

    /// Returns the timeout of opening a connection.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Keeps a connection for the next HTTP/1.1 request.
    pub(crate) fn put(&self, socket: Socket) {
        *self.spare.lock() = Some((socket, Instant::now()));
    }
}

impl Service<Uri> for Dialer {
    type Response = Socket;
    type Error = NotConnected;
    type Future = BoxFuture<'static, Result<Socket, NotConnected>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NotConnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move {
            let spare = dialer.spare.lock().take();
            match spare.filter(|(_, since)| since.elapsed() < SPARE_FOR) {
                Some((socket, _)) => Ok(socket),
                None => dialer.dial().await,
            }
        })
    }
}

/// Returns whether an error comes from TLS.
///
/// Such an error is an I/O error about invalid data.
pub(crate) fn is_tls(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |each| (**each).source());
    causes.any(|each| {
        let Some(error) = each.downcast_ref::<io::Error>() else {
            return false;
        };
        // The error within an I/O error is not among its sources.
        let is_inside = || error.get_ref().is_some_and(|inner| is_tls(inner));
        error.kind() == io::ErrorKind::InvalidData || is_inside()
    })
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(PROBE_AFTER));
    tcp.set_keepalive_interval(Some(PROBE_EVERY));
    tcp.set_keepalive_retries(Some(PROBES));
    // Keepalive tests connections on which everything was acknowledged; this limits unacknowledged data.
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    tcp.set_tcp_user_timeout(Some(SILENT_FOR));
    tcp
}

/// Creates a dialer for each of two ALPN offers, with a shared TLS configuration.
///
/// It may read files, so it blocks.
pub(crate) fn dialers(config: &Config, offers: [Offer; 2]) -> Result<[Dialer; 2], kube::Error> {
    let tls = Tls::new(config)?;
    let connector = |offer| through_proxy(config, &tls, offer);
    let [first, second] = offers;
    let (first, second) = (connector(first)?, connector(second)?);
    Ok([first, second].map(|connector| Dialer::new(config, connector)))
}

/// Creates a connector, through the proxy of the configuration if there is one.
///
/// The user and password of the proxy are taken out of its URL, which appears in errors.
fn through_proxy(config: &Config, tls: &Tls, offer: Offer) -> Result<Connector, kube::Error> {
    let Some(proxy) = config.proxy_url.clone() else {
        return tls.wrap(config, tcp(), offer);
    };
    let (proxy, user) = url::split_user(proxy);
    match proxy.scheme_str() {
        Some("socks5" | "socks5h") => {
            let socks = SocksV5::new(url::with_port(proxy, SOCKS_PORT), tcp());
            let socks = match user {
                Some((name, password)) => socks.with_auth(name, password),
                None => socks,
            };
            tls.wrap(config, socks, offer)
        }
        Some("http") => tls.wrap(config, tunnel(proxy, user, tcp()), offer),
        Some("https") => {
            let to_proxy = tls.wrap_proxy(tcp())?;
            tls.wrap(config, tunnel(proxy, user, to_proxy), offer)
        }
        scheme => {
            let scheme = scheme.unwrap_or_default();
            let text = format!("the proxy has the scheme {scheme:?}; use http, https or socks5");
            Err(kube::Error::Service(text.into()))
        }
    }
}

fn tunnel<C>(proxy: Uri, user: Option<(String, String)>, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy, connector);
    match user.and_then(|(name, password)| basic(&name, &password)) {
        Some(header) => tunnel.with_auth(header),
        None => tunnel,
    }
}

/// Returns the header for a user and password.
fn basic(name: &str, password: &str) -> Option<http::HeaderValue> {
    use base64::Engine;
    let pair = format!("{name}:{password}");
    let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
    let mut header: http::HeaderValue = format!("Basic {encoded}").parse().ok()?;
    header.set_sensitive(true);
    Some(header)
}
