//! The loopback HTTP server.

use std::net::SocketAddr;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::service::ClusterService;

/// How long to wait after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves a listener until the cluster stops.
pub(crate) async fn serve(listener: TcpListener, service: ClusterService, tasks: TaskTracker) {
    let stopped = service.server.stopped.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped.cancelled() => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                tasks.spawn(connection(stream, peer, service.clone(), stopped.clone()));
            }
            // Running out of descriptors passes, but not at once.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    service: ClusterService,
    stopped: CancellationToken,
) {
    // Watch events are small and must not wait for each other.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, %peer, "cannot set TCP_NODELAY");
    }
    let service = hyper_util::service::TowerToHyperService::new(service);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    let outcome = tokio::select! {
        outcome = serving => outcome,
        () = stopped.cancelled() => return,
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, %peer, "connection ended");
    }
}
