//! Serves HTTP connections with limits and timeouts.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{self, Instant, Sleep};
use tokio_util::sync::CancellationToken;

/// The maximum length of a URL that services should accept, in bytes.
///
/// The header of a request may be four times as long.
pub const LONGEST_URL: usize = 16 * 1024;

/// The maximum number of connections.
const CONNECTIONS: usize = 1_024;
/// The timeout for the header of a request.
const HEAD: Duration = Duration::from_secs(30);
/// The timeout of a client that does not read its response.
const STALLED: Duration = Duration::from_secs(30);
/// The timeout for a TLS handshake.
#[cfg(feature = "tls")]
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The grace period of running requests after a stop.
const GRACE: Duration = Duration::from_secs(10);
/// The pause after a failed accept, for example for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// The size of a connection's buffer, in bytes.
///
/// The longest URL fits, and at least as many bytes of headers.
const BUFFER: usize = 4 * LONGEST_URL;

/// Serves HTTP/1.1 connections until it is stopped.
///
/// `what` names the service in logs. At most 1,024 connections are served; further ones wait. A client must send the
/// header of a request within 30 seconds. A client that does not read for 30 seconds is disconnected. After a stop,
/// running requests have 10 seconds to end.
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
    let served = move |stream| connection(what, stream, router.clone(), stop.clone());
    accept(what, listener, stopping, served).await;
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
    let served = move |stream: TcpStream| {
        let (acceptor, router, stop) = (acceptor.clone(), router.clone(), stop.clone());
        async move {
            let _ = stream.set_nodelay(true);
            // A stop does not wait for clients that have not sent a request yet.
            let shaken =
                stop.run_until_cancelled(time::timeout(HANDSHAKE, acceptor.accept(stream)));
            match shaken.await {
                Some(Ok(Ok(stream))) => requests(what, stream, router, stop.clone()).await,
                Some(Ok(Err(error))) => {
                    tracing::debug!(%error, "a TLS handshake with {what} has failed");
                }
                Some(Err(_)) => tracing::debug!("a TLS handshake with {what} has timed out"),
                None => {}
            }
        }
    };
    accept(what, listener, stopping, served).await;
}

/// Accepts connections until it is stopped, then waits for the running requests.
async fn accept<F>(
    what: &'static str,
    listener: TcpListener,
    stopping: CancellationToken,
    serve: impl Fn(TcpStream) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let accepted = async {
            // Before the accept: further clients wait in the kernel's queue, where they cost this process nothing.
            let permit = Arc::clone(&room).acquire_owned().await;
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
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
            Ok((stream, _)) => {
                let served = serve(stream);
                connections.spawn(async move {
                    served.await;
                    drop(permit);
                });
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

/// Serves a connection without TLS until it is closed.
async fn connection(
    what: &'static str,
    stream: TcpStream,
    router: Router,
    stopping: CancellationToken,
) {
    // Server-sent events are small and should be sent immediately.
    let _ = stream.set_nodelay(true);
    requests(what, stream, router, stopping).await;
}

/// Serves the requests of a connection until it is closed.
async fn requests(
    what: &'static str,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    stopping: CancellationToken,
) {
    let io = TokioIo::new(WriteTimeout::new(stream, STALLED));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .serve_connection(io, TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to {what} has ended");
    }
}

/// A stream that fails if the client does not read for some time.
///
/// hyper has a timeout for the header of a request, but none for writing. A client that never reads would keep its
/// connection forever.
struct WriteTimeout<S> {
    /// The stream.
    stream: S,
    /// The timeout.
    limit: Duration,
    /// When the stream fails; counts only while `is_waiting`.
    timer: Pin<Box<Sleep>>,
    /// Whether a write is waiting for the client.
    is_waiting: bool,
}

impl<S> WriteTimeout<S> {
    /// Wraps a stream.
    fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            limit,
            timer: Box::pin(time::sleep(limit)),
            is_waiting: false,
        }
    }

    /// Returns the result of a write, or a timeout if it has waited for too long.
    fn watched<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.timer.as_mut().reset(Instant::now() + self.limit);
        }
        ready!(self.timer.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watched(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_cut_off() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut stream = WriteTimeout::new(ours, STALLED);
        stream.write_all(b"12345678").await.unwrap();
        // A client that reads now and then is not cut off.
        for _ in 0..3 {
            let more = async {
                time::sleep(STALLED - Duration::from_secs(1)).await;
                theirs.read_exact(&mut [0; 4]).await.unwrap();
            };
            let (written, ()) = tokio::join!(stream.write_all(b"1234"), more);
            written.unwrap();
        }
        let started = Instant::now();
        let error = stream.write_all(b"1234").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed().as_secs(), STALLED.as_secs());
    }
}
