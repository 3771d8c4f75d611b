//! The HTTP server: HTTP/1.1 and HTTP/2 on one port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::time;
use tokio_util::task::TaskTracker;

use super::connection::Connection;
use super::secure::Acceptor;
use super::service::ClusterService;
use super::socket::Socket;
use super::streams::Streams;
use crate::idle_timeout::IdleTimeout;

/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The time a connection may be open without a request, as on a real server.
// ReadHeaderTimeout in apiserver's secure_serving.go.
const FIRST_REQUEST: Duration = Duration::from_secs(32);

/// The number of concurrent requests on an HTTP/2 connection, as in Go's server.
const MAX_STREAMS: u32 = 250;

/// The state that all connections of a listener share.
#[derive(Debug, Clone)]
pub(crate) struct ListenerContext {
    pub(crate) acceptor: Acceptor,
    pub(crate) service: ClusterService,
    pub(crate) tasks: TaskTracker,
}

/// Serves a listener until the cluster stops.
pub(crate) async fn serve(listener: TcpListener, context: ListenerContext) {
    let server = &context.service.server;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = server.stopped.cancelled() => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                server.connections.fetch_add(1, Ordering::Relaxed);
                context
                    .tasks
                    .spawn(connection(stream, peer, context.clone()));
            }
            // Running out of descriptors passes, but not at once.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, context: ListenerContext) {
    // Its requests end with it, also those HTTP/2 has tasks of their own for.
    let connection = Connection::new(Arc::clone(&context.service.server));
    let _ended = connection.ended.clone().drop_guard();
    // Watch events are small and must not wait for each other.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, %peer, "cannot set TCP_NODELAY");
    }
    let outcome = tokio::select! {
        outcome = speak(stream, peer, context, &connection) => outcome,
        () = unused(&connection) => Err("no request has come".into()),
        () = connection.ended.cancelled() => return,
    };
    if connection.is_cut_off() {
        tracing::warn!(%peer, "a connection is closed: its client takes nothing of what is sent");
    } else if let Err(error) = outcome {
        tracing::debug!(%error, %peer, "connection ended");
    }
}

/// Waits until the first request is overdue; never resolves once it has come.
async fn unused(connection: &Connection) {
    IdleTimeout::new(FIRST_REQUEST).wait().await;
    if connection.is_used() {
        std::future::pending().await
    }
}

async fn speak(
    stream: TcpStream,
    peer: SocketAddr,
    context: ListenerContext,
    connection: &Connection,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let timeout = context.service.server.time.write_timeout;
    let socket = Socket::new(stream, connection.clone(), timeout);
    let stream = context.acceptor.accept(socket).await?;
    let mut server = auto::Builder::new(Streams {
        tasks: context.tasks,
        connection: connection.clone(),
        peer,
        timeout,
    });
    server.http1().timer(TokioTimer::new());
    server
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS);
    let service = TowerToHyperService::new(ClusterService {
        connection: Some(connection.clone()),
        ..context.service
    });
    server.serve_connection(TokioIo::new(stream), service).await
}
