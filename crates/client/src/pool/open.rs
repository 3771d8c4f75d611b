//! Opening HTTP/2 connections, and driving them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time;

use super::line::Line;
use crate::dial::{Dialer, NotConnected};
use crate::socket::Socket;

/// The silence before a ping, and the timeout of its answer, as in client-go.
pub(crate) const PING_AFTER: Duration = Duration::from_secs(30);
pub(crate) const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// The flow-control windows, in bytes: large enough for lists from distant servers.
///
/// The second one is shared by all answers of a connection, so that an answer that is not read cannot block the others.
pub(crate) const STREAM_WINDOW: u32 = 1024 * 1024;
pub(crate) const CONNECTION_WINDOW: u32 = 128 * 1024 * 1024;

/// The stream limit before the server's settings arrive; nothing is sent before.
const NOT_SETTLED: usize = 0;

/// The result of opening a connection.
#[derive(Clone)]
pub(super) enum Opened {
    Line(Arc<Line>),
    /// The server chose HTTP/1.1.
    NotHttp2,
}

/// The error of a connection that could not be opened, or accepts no requests.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    NotConnected(NotConnected),
    #[error("the connection to {url} ended before the server sent its settings")]
    Ended {
        url: http::Uri,
        source: Option<Arc<hyper::Error>>,
    },
    #[error("{url} announced no stream limit within {after:?}, or allows no streams")]
    NoStreams { url: http::Uri, after: Duration },
}

impl OpenError {
    /// Returns the error for a new connection that accepts no requests.
    pub(super) fn of_no_use(dialer: &Dialer, is_closed: bool) -> Self {
        let url = dialer.url().clone();
        if is_closed {
            return Self::Ended { url, source: None };
        }
        let after = settling_timeout(dialer);
        Self::NoStreams { url, after }
    }
}

/// Returns the timeout for the server's settings.
fn settling_timeout(dialer: &Dialer) -> Duration {
    dialer.timeout().unwrap_or(PING_AFTER + PING_TIMEOUT)
}

/// A connection until it has ended.
pub(super) struct Http2 {
    /// It accepts requests while it is stored here.
    connection: Mutex<Option<http2::Connection<Socket, Body, TokioExecutor>>>,
    /// The server's stream limit when it was last asked for; 0 if the connection has ended.
    limit: AtomicUsize,
}

impl Http2 {
    /// Returns the server's stream limit; 0 if the connection has ended.
    ///
    /// Never blocks: while the connection is being polled, it is the limit that was last known.
    pub(super) fn streams(&self) -> usize {
        let Some(connection) = self.connection.try_lock() else {
            return self.limit.load(Ordering::Relaxed);
        };
        self.read(&connection)
    }

    fn settled_streams(&self) -> usize {
        self.read(&self.connection.lock())
    }

    fn read(&self, connection: &Option<http2::Connection<Socket, Body, TokioExecutor>>) -> usize {
        let limit = connection
            .as_ref()
            .map_or(NOT_SETTLED, |each| each.current_max_send_streams());
        self.limit.store(limit, Ordering::Relaxed);
        limit
    }
}

/// Opens a connection, and waits for the server's stream limit.
pub(super) async fn open(
    dialer: &Dialer,
    number: u64,
    has_prior_knowledge: bool,
) -> Result<Opened, OpenError> {
    let socket = dialer.dial().await.map_err(OpenError::NotConnected)?;
    if !has_prior_knowledge && !socket.is_http2 {
        dialer.put(socket);
        return Ok(Opened::NotHttp2);
    }
    let url = || dialer.url().clone();
    let ended = |source: hyper::Error| OpenError::Ended {
        url: url(),
        source: Some(Arc::new(source)),
    };
    let settled = Arc::new(Settled::default());
    let reads = Arc::clone(&settled);
    let socket = socket.on_read(move || reads.may_have_settled());
    let (send, connection) = builder().handshake(socket).await.map_err(ended)?;
    let connection = Arc::new(Http2 {
        connection: Mutex::new(Some(connection)),
        limit: AtomicUsize::new(NOT_SETTLED),
    });
    drive(Arc::clone(&connection), Arc::clone(&settled));
    let arrived = settled.wait(&connection, &send);
    let limit = settling_timeout(dialer);
    let in_time = time::timeout(limit, arrived).await.is_ok();
    if connection.settled_streams() == NOT_SETTLED {
        let (url, source) = (url(), settled.end.lock().clone());
        return Err(if in_time {
            OpenError::Ended { url, source }
        } else {
            OpenError::NoStreams { url, after: limit }
        });
    }
    Ok(Opened::Line(Line::new(send, connection, number)))
}

fn builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_max_send_streams(NOT_SETTLED)
        .keep_alive_interval(PING_AFTER)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    builder
}

/// Drives a connection until it ends.
///
/// It ends when the pool and all answers have released it.
///
/// hyper runs other tasks of the connection on the same executor; they end with it.
fn drive(connection: Arc<Http2>, settled: Arc<Settled>) {
    let driven = Driven {
        connection,
        settled,
    };
    TokioExecutor::new().execute(async move {
        let poll = |cx: &mut Context<'_>| match &mut *driven.connection.connection.lock() {
            Some(connection) => connection.poll_unpin(cx),
            None => Poll::Ready(Ok(())),
        };
        if let Err(error) = std::future::poll_fn(poll).await {
            tracing::debug!(%error, "a connection to the API server ended");
            *driven.settled.end.lock() = Some(Arc::new(error));
        }
    });
}

/// A connection that a task drives.
///
/// The connection ends with the task, however that ends: also with its runtime, or by a panic. Otherwise it would count as
/// open, and requests on it would never be answered.
struct Driven {
    connection: Arc<Http2>,
    settled: Arc<Settled>,
}

impl Drop for Driven {
    fn drop(&mut self) {
        let ended = self.connection.connection.lock().take();
        drop(ended);
        let limit = &self.connection.limit;
        limit.store(NOT_SETTLED, Ordering::Relaxed);
        self.settled.notify.notify_waiters();
    }
}

/// Notifies when the server's settings may have arrived.
#[derive(Default)]
struct Settled {
    notify: Notify,
    is_settled: AtomicBool,
    /// The error with which the connection ended, if any.
    end: Mutex<Option<Arc<hyper::Error>>>,
}

impl Settled {
    /// Wakes the opener, unless it has its limit.
    fn may_have_settled(&self) {
        if !self.is_settled.load(Ordering::Relaxed) {
            self.notify.notify_waiters();
        }
    }

    /// Waits until the server's stream limit is known, or the connection has ended.
    async fn wait(&self, connection: &Http2, send: &SendRequest<Body>) {
        loop {
            let mut notified = std::pin::pin!(self.notify.notified());
            // Registered before the check, so that a notification in between is not lost.
            notified.as_mut().enable();
            if connection.settled_streams() != NOT_SETTLED || send.is_closed() {
                self.is_settled.store(true, Ordering::Relaxed);
                return;
            }
            notified.await;
        }
    }
}
