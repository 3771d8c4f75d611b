//! One connection for many watches: HTTP/2 where the server offers it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response, Version, header};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client as HyperClient};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use parking_lot::Mutex;
use tokio::time;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, util::BoxCloneSyncService};

/// Whether requests share connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Http2 {
    /// Over TLS the server is asked, and without TLS HTTP/1.1 is spoken, as clients of Kubernetes do.
    #[default]
    Negotiated,
    /// HTTP/2 at once, without asking: for servers without TLS that are known to speak it.
    PriorKnowledge,
    /// HTTP/1.1 always, a connection for every watch.
    Off,
}

/// How long nothing may come on a connection before it is tested, and how long the answer may take: what
/// client-go does.
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// How many requests share a connection. Servers allow some number (Go's 250, as a rule), and what is beyond
/// it would wait for a watch to end.
const SHARED_BY: usize = 100;

/// How much of an answer may be on its way: enough that lists are not slowed down by distance. The second
/// is what all answers of a connection share, so that one nobody reads cannot hold up the others.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 128 * 1024 * 1024;

/// How long requests wait for another to find out what the server speaks.
const ASKING: Duration = Duration::from_secs(5);

#[cfg(feature = "rustls-tls")]
type Connector = hyper_rustls::HttpsConnector<HttpConnector>;
#[cfg(not(feature = "rustls-tls"))]
type Connector = HttpConnector;

type Hyper = HyperClient<hyper_timeout::TimeoutConnector<Connector>, Body>;
type RouterBody = UnsyncBoxBody<bytes::Bytes, BoxError>;
type Stack = BoxCloneSyncService<Request<Body>, Response<RouterBody>, BoxError>;

/// Makes a client for a configuration, in which requests share connections where that can be.
pub(super) fn client(config: Config, http2: Http2) -> Result<Client, kube::Error> {
    // A tunnel through a proxy is kube's own business.
    if http2 == Http2::Off || config.proxy_url.is_some() {
        return Client::try_from(config);
    }
    let namespace = config.default_namespace.clone();
    let layered = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .service(Wire::new(&config, http2)?);
    let router = Router {
        shared: BoxCloneSyncService::new(layered.map_err(BoxError::from)),
        upgrades: Client::try_from(config)?,
    };
    Ok(Client::new(router, namespace))
}

/// Sends upgrades (exec, attach, port-forward), which HTTP/2 does not have, their own way.
#[derive(Clone)]
struct Router {
    shared: Stack,
    upgrades: Client,
}

impl Service<Request<Body>> for Router {
    type Response = Response<RouterBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), BoxError>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if request.headers().contains_key(header::UPGRADE) {
            let upgrades = self.upgrades.clone();
            return Box::pin(async move {
                let response = upgrades.send(request).await?;
                Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
            });
        }
        Box::pin(self.shared.clone().oneshot(request))
    }
}

/// The connections to one server.
#[derive(Clone)]
struct Wire {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    /// Finds out what the server speaks, and speaks HTTP/1.1 with those that know nothing else.
    asking: Hyper,
    /// Connections for so many requests each; another is made when all are full.
    multiplexed: Mutex<Vec<Connection>>,
    /// What is known of the server; nothing at first.
    speaks: Mutex<Option<Speaks>>,
    /// Whether that was told rather than found out.
    told: bool,
    /// Held by the request that finds out, so that not every kind opens a connection at the start.
    first: tokio::sync::Mutex<()>,
}

/// One connection at a time, made again when it is lost.
#[derive(Clone)]
struct Connection {
    hyper: Hyper,
    /// Every request that is under way, its answer included, has a clone.
    shares: Arc<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Http1,
    Http2,
}

impl Wire {
    fn new(config: &Config, http2: Http2) -> Result<Self, kube::Error> {
        let speaks = (http2 == Http2::PriorKnowledge).then_some(Speaks::Http2);
        Ok(Self {
            shared: Arc::new(Shared {
                asking: hyper(config, false)?,
                multiplexed: Mutex::default(),
                config: config.clone(),
                told: speaks.is_some(),
                speaks: Mutex::new(speaks),
                first: tokio::sync::Mutex::default(),
            }),
        })
    }
}

impl Shared {
    async fn send(&self, request: Request<Body>) -> Result<Response<RouterBody>, BoxError> {
        if self.known().is_none() {
            let asking = time::timeout(ASKING, self.first.lock()).await;
            if self.known().is_none() {
                let response = self.asking.request(request).await?;
                *self.speaks.lock() = Some(match response.version() {
                    Version::HTTP_2 => Speaks::Http2,
                    _ => Speaks::Http1,
                });
                drop(asking);
                return Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()));
            }
        }
        if self.known() == Some(Speaks::Http1) {
            let response = self.asking.request(request).await?;
            return Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()));
        }
        let Connection { hyper, shares } = self.connection()?;
        let response = hyper.request(request).await.map_err(|error| {
            // Another server may be there by now.
            if error.is_connect() && !self.told {
                *self.speaks.lock() = None;
            }
            BoxError::from(error)
        })?;
        Ok(response.map(|body| {
            let body = body.map_err(BoxError::from);
            // Gives its share up when it has been read, or nobody wants it any more.
            body.map_frame(move |frame| {
                let _ = &shares;
                frame
            })
            .boxed_unsync()
        }))
    }

    /// Returns a connection with room for another request.
    fn connection(&self) -> Result<Connection, kube::Error> {
        let mut connections = self.multiplexed.lock();
        // The list has a share itself.
        let has_room = |each: &&Connection| Arc::strong_count(&each.shares) <= SHARED_BY;
        if let Some(connection) = connections.iter().find(has_room) {
            return Ok(connection.clone());
        }
        let connection = Connection {
            hyper: hyper(&self.config, true)?,
            shares: Arc::default(),
        };
        connections.push(connection.clone());
        Ok(connection)
    }

    fn known(&self) -> Option<Speaks> {
        *self.speaks.lock()
    }
}

fn hyper(config: &Config, multiplexed: bool) -> Result<Hyper, kube::Error> {
    let mut connector = hyper_timeout::TimeoutConnector::new(connector(config)?);
    connector.set_connect_timeout(config.connect_timeout);
    Ok(Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_only(multiplexed)
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .build(connector))
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp
}

#[cfg(feature = "rustls-tls")]
fn connector(config: &Config) -> Result<Connector, kube::Error> {
    use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};

    let tls = config.rustls_client_config()?;
    let mut builder = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into();
        let name = name.map_err(|_| {
            let text = "tls-server-name is neither a host name nor an address";
            kube::Error::Service(text.into())
        })?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder.enable_all_versions().wrap_connector(tcp()))
}

#[cfg(not(feature = "rustls-tls"))]
fn connector(config: &Config) -> Result<Connector, kube::Error> {
    match config.cluster_url.scheme() == Some(&http::uri::Scheme::HTTPS) {
        true => Err(kube::Error::TlsRequired),
        false => Ok(tcp()),
    }
}

impl Service<Request<Body>> for Wire {
    type Response = Response<RouterBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), BoxError>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        // Built from parts by callers; what it is sent with is up to the connection.
        *request.version_mut() = Version::HTTP_11;
        Box::pin(async move { shared.send(request).await })
    }
}
