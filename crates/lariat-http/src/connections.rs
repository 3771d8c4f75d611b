//! Serves connections.

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

/// The maximum length of a URL that services take, in bytes.
///
/// The head of a request may have four times as much.
pub const LONGEST_URL: usize = 16 * 1024;

const CONNECTIONS: usize = 1_024;
/// The timeout for the head of a request.
const HEAD: Duration = Duration::from_secs(30);
/// The timeout for a client that does not read its response.
const STALLED: Duration = Duration::from_secs(30);
/// The timeout for the client's part of a TLS handshake.
#[cfg(feature = "tls")]
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The grace period of running requests after a stop.
const GRACE: Duration = Duration::from_secs(10);
/// The pause after a failed accept, such as without free file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// The size of a connection's buffer, in bytes.
///
/// The longest URL fits, and at least as many bytes of headers.
const BUFFER: usize = 4 * LONGEST_URL;

/// Serves HTTP/1.1 connections until it is stopped.
///
/// `what` names the service in the log. There are at most 1,024 connections; further ones wait. A client has 30 seconds
/// to send a head; one that does not read for 30 seconds is disconnected. At the end running requests have 10 seconds.
///
/// # Cancel safety
///
/// Dropping the future closes all connections.
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
/// A client has 10 seconds for the handshake. Of a failed handshake the reason is in the log, for debugging.
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
            // A stop does not wait for a client that has not yet asked for anything.
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

/// Accepts connections until it is stopped, and then waits for the running requests.
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
            let permit = Arc::clone(&room).acquire_owned().await;
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            biased;
            () = stopping.cancelled() => break,
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

/// Serves a connection until it is closed.
async fn connection(
    what: &'static str,
    stream: TcpStream,
    router: Router,
    stopping: CancellationToken,
) {
    // Events are small, and should be sent immediately.
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
    let io = TokioIo::new(Impatient::new(stream, STALLED));
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

/// A connection that fails if the client does not read for some time.
struct Impatient<S> {
    stream: S,
    limit: Duration,
    /// When it fails; counts while `is_waiting`.
    timer: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<S> Impatient<S> {
    fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            limit,
            timer: Box::pin(time::sleep(limit)),
            is_waiting: false,
        }
    }

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

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
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
        let mut stream = Impatient::new(ours, STALLED);
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
