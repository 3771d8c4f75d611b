//! The HTTP server: HTTP/1.1 and HTTP/2 on one port.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::time;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::secure::Acceptor;
use super::service::ClusterService;

/// How long to wait after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How many requests an HTTP/2 connection carries at a time, as in Go's server.
const MAX_STREAMS: u32 = 250;

/// What every connection of a listener needs.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(crate) acceptor: Acceptor,
    pub(crate) service: ClusterService,
    pub(crate) tasks: TaskTracker,
}

/// Serves a listener until the cluster stops.
pub(crate) async fn serve(listener: TcpListener, door: Door) {
    let server = &door.service.server;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = server.stopped.cancelled() => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                server.connections.fetch_add(1, Ordering::Relaxed);
                door.tasks.spawn(connection(stream, peer, door.clone()));
            }
            // Running out of descriptors passes, but not at once.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, door: Door) {
    // Its requests end with it, also those HTTP/2 has tasks of their own for.
    let ended = door.service.server.stopped.child_token();
    let _ended = ended.clone().drop_guard();
    // Watch events are small and must not wait for each other.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, %peer, "cannot set TCP_NODELAY");
    }
    let outcome = tokio::select! {
        outcome = speak(stream, door, &ended) => outcome,
        () = ended.cancelled() => return,
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, %peer, "connection ended");
    }
}

async fn speak(
    stream: TcpStream,
    door: Door,
    ended: &CancellationToken,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stream = door.acceptor.accept(stream).await?;
    let mut server = auto::Builder::new(Streams {
        tasks: door.tasks,
        ended: ended.clone(),
    });
    server.http1().timer(TokioTimer::new());
    server
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS);
    let service = TowerToHyperService::new(ClusterService {
        connection: Some(ended.clone()),
        ..door.service
    });
    server.serve_connection(TokioIo::new(stream), service).await
}

/// Runs the requests of one HTTP/2 connection as tasks of the cluster.
#[derive(Debug, Clone)]
struct Streams {
    tasks: TaskTracker,
    ended: CancellationToken,
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let ended = self.ended.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                _ = stream => {}
                () = ended.cancelled() => {}
            }
        });
    }
}
