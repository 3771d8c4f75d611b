//! Serves HTTP connections with limits and timeouts.

mod requests;
mod table;
mod write_timeout;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time;
use tokio_util::sync::CancellationToken;

use requests::requests;
use table::{Capacity, Place, Table};
use write_timeout::WriteTimeout;

/// The maximum length of a URL that services should accept, in bytes.
///
/// The header of a request may be four times as long.
pub const LONGEST_URL: usize = 16 * 1024;

/// The connections that are open at most.
const CAPACITY: Capacity = Capacity {
    requests: 1_024,
    probes: 32,
};
/// The timeout of a client that does not read its response.
const STALLED: Duration = Duration::from_secs(30);
/// The timeout for a TLS handshake.
#[cfg(feature = "tls")]
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The grace period of running requests after a stop.
const GRACE: Duration = Duration::from_secs(10);
/// The pause after a failed accept, for example for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// Serves HTTP/1.1 connections until it is stopped.
///
/// `what` names the service in logs. A client must send the header of a request within 30 seconds. A client that does
/// not read for 30 seconds is disconnected, also if its system has acknowledged all bytes of a TLS record before. After
/// a stop, running requests have 10 seconds to end.
///
/// At most 1,024 connections are open. If one more client connects, the connection is closed that has had no request in
/// progress for the longest time, among those of the address that has the most connections. While all 1,024 have
/// requests in progress, 32 more clients may send one request each to `/livez`, `/readyz` or `/healthz`; their other
/// requests are answered with 503. Further clients wait.
///
/// # Cancel safety
///
/// Dropping the future closes all connections.
///
/// # Examples
///
/// ```no_run
/// use axum::{Router, routing::get};
/// use tokio::net::TcpListener;
/// use tokio_util::sync::CancellationToken;
///
/// # async fn example() -> std::io::Result<()> {
/// let router = Router::new().route("/livez", get(|| async { "ok" }));
/// let listener = TcpListener::bind("127.0.0.1:8080").await?;
/// lariat_http::serve("the probes", listener, router, CancellationToken::new()).await;
/// # Ok(()) }
/// ```
pub async fn serve(
    what: &'static str,
    listener: TcpListener,
    router: Router,
    stopping: CancellationToken,
) {
    let stop = stopping.clone();
    let served = move |stream, place| {
        let (router, stop) = (router.clone(), stop.clone());
        async move { requests(what, watched(stream), router, place, stop).await }
    };
    accept(what, listener, Table::new(CAPACITY), stopping, served).await;
}

/// Serves HTTP/1.1 connections over TLS until it is stopped; see [`serve()`].
///
/// A client has 10 seconds for the handshake. The reason of a failed handshake is logged at debug level.
///
/// # Cancel safety
///
/// Dropping the future closes all connections.
#[cfg(feature = "tls")]
pub async fn serve_tls(
    what: &'static str,
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    router: Router,
    stopping: CancellationToken,
) {
    let acceptor = tokio_rustls::TlsAcceptor::from(tls);
    let stop = stopping.clone();
    let served = move |stream: TcpStream, place: Place| {
        let (acceptor, router, stop) = (acceptor.clone(), router.clone(), stop.clone());
        async move {
            // A stop does not wait for clients that have not sent a request yet.
            let shaken = stop
                .run_until_cancelled(time::timeout(HANDSHAKE, acceptor.accept(watched(stream))));
            match shaken.await {
                Some(Ok(Ok(stream))) => requests(what, stream, router, place, stop.clone()).await,
                Some(Ok(Err(error))) => {
                    tracing::debug!(%error, "a TLS handshake with {what} has failed");
                }
                Some(Err(_)) => tracing::debug!("a TLS handshake with {what} has timed out"),
                None => {}
            }
        }
    };
    accept(what, listener, Table::new(CAPACITY), stopping, served).await;
}

/// Accepts connections until it is stopped, then waits for the running requests.
async fn accept<F>(
    what: &'static str,
    listener: TcpListener,
    table: Arc<Table>,
    stopping: CancellationToken,
    serve: impl Fn(TcpStream, Place) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            table.room().await;
            listener.accept().await
        };
        let accepted = tokio::select! {
            biased;
            () = stopping.cancelled() => break,
            // Ended tasks are collected as they end; the set would grow otherwise.
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection of {what} has failed");
                }
                continue;
            }
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                // The place that was seen may be busy again; the client is refused then, as by a full listener.
                let Some(place) = table.admit(peer.ip()) else {
                    continue;
                };
                let served = serve(stream, place.clone());
                connections.spawn(async move { place.hold(served).await });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection to {what} cannot be accepted");
                time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if time::timeout(GRACE, ended).await.is_err() {
        connections.shutdown().await;
    }
}

/// Returns a stream that fails if the client does not read.
///
/// Below TLS: above it, bytes that the client does not read are buffered by TLS, whose writes succeed.
fn watched(stream: TcpStream) -> WriteTimeout<TcpStream> {
    // Server-sent events are small and should be sent immediately.
    let _ = stream.set_nodelay(true);
    WriteTimeout::new(stream, STALLED)
}

#[cfg(test)]
mod tests;
