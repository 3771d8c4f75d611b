//! A small HTTP server with one page: `/metrics`.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use lariat::CancellationToken;
use lariat::metrics::prometheus_client::encoding::text;
use lariat::metrics::prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The content type for Prometheus.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The maximum number of connections; further ones wait.
const CONNECTIONS: usize = 16;
/// The timeout for a client's request, and for reading the response when the exporter ends.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Serves a registry on a port.
pub struct Exporter {
    listener: TcpListener,
    address: SocketAddr,
    registry: Arc<Registry>,
}

impl Exporter {
    /// Starts to listen; port 0 means any free port.
    ///
    /// # Errors
    ///
    /// The address is in use, or not of this machine.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future frees the port.
    pub async fn bind(address: SocketAddr, registry: Registry) -> Result<Self> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            registry: Arc::new(registry),
        })
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the token is cancelled; running responses are finished.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends all connections.
    pub async fn serve(self, stop: CancellationToken) {
        // It owns the connections: none outlives it.
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(_) = connections.join_next(), if connections.len() >= CONNECTIONS => continue,
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, Arc::clone(&self.registry), stop.clone()));
                }
                // No file descriptors are left, or the client has disconnected: an immediate retry would not help.
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
        let _ = timeout(TIMEOUT, async {
            while connections.join_next().await.is_some() {}
        })
        .await;
    }
}

/// Serves one client.
async fn converse(stream: TcpStream, registry: Arc<Registry>, stop: CancellationToken) {
    let service = service_fn(|request| {
        let response = answer(&request, &registry);
        async { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        // A client that disconnects is not an error.
        _ = connection.as_mut() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

fn answer(request: &Request<Incoming>, registry: &Registry) -> Response<Full<Bytes>> {
    let (status, kind, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => {
            let mut body = String::new();
            match text::encode(&mut body, registry) {
                Ok(()) => (StatusCode::OK, CONTENT_TYPE, body),
                Err(_) => plain(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the metrics cannot be encoded",
                ),
            }
        }
        (_, "/metrics") => plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is supported"),
        _ => plain(StatusCode::NOT_FOUND, "there is only /metrics"),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn plain(status: StatusCode, text: &str) -> (StatusCode, &'static str, String) {
    (status, "text/plain; charset=utf-8", format!("{text}\n"))
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
