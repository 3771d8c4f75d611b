//! A server that runs.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::health::WebhookHealth;
use super::installer::Installer;
use super::routes::Routes;
use crate::certificates::{Keeper, Shown};
use crate::error::WebhookError;

/// Webhooks that are being served.
///
/// Dropping the handle stops the server, without waiting for it.
#[must_use = "dropping the handle stops the server"]
pub struct WebhookServer {
    address: SocketAddr,
    shown: Arc<Shown>,
    health: WebhookHealth,
    tasks: TaskTracker,
    stopping: CancellationToken,
    _stops: DropGuard,
}

/// What a server is started with.
pub(crate) struct Start {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) keeper: Keeper,
    pub(crate) routes: Routes,
    pub(crate) installer: Option<Installer>,
}

/// Starts a server, and applies the configurations once it listens.
pub(crate) async fn start(start: Start) -> Result<WebhookServer, WebhookError> {
    let shown = start.keeper.shown();
    let tls = shown.config().map_err(WebhookError::Tls)?;
    let (tasks, stopping) = (TaskTracker::new(), CancellationToken::new());
    let health = WebhookHealth::new(Arc::clone(&shown), stopping.clone());
    let server = WebhookServer {
        address: start.address,
        shown: Arc::clone(&shown),
        health: health.clone(),
        tasks: tasks.clone(),
        stopping: stopping.clone(),
        _stops: stopping.clone().drop_guard(),
    };
    let router = start.routes.router(health.clone());
    tasks.spawn(lariat_http::serve_tls(
        "webhooks",
        start.listener,
        tls,
        router,
        stopping.clone(),
    ));
    let kept = stopping
        .clone()
        .run_until_cancelled_owned(start.keeper.run());
    tasks.spawn(kept);
    if let Some(installer) = start.installer {
        let mut authority = shown.authority();
        let present = authority.borrow_and_update().clone();
        if let Err(error) = installer.apply(present, &shown).await {
            server.shutdown().await;
            return Err(error);
        }
        let installed = installer.run(Arc::clone(&shown), authority, health);
        tasks.spawn(stopping.run_until_cancelled_owned(installed));
    }
    tasks.close();
    tracing::info!(address = %server.address, "webhooks are served");
    Ok(server)
}

impl WebhookServer {
    /// Returns the address that is listened on, with the port that the system chose.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the authorities that clients have to trust, in PEM; none if others inject them.
    #[must_use]
    pub fn authority(&self) -> Option<String> {
        self.shown.authority().borrow().clone()
    }

    /// Returns the health, for probes.
    #[must_use]
    pub fn health(&self) -> WebhookHealth {
        self.health.clone()
    }

    /// Stops the server: no further connection is accepted, and running requests have ten seconds.
    ///
    /// The configurations stay: other replicas may serve the webhooks. API servers notice only after some seconds that
    /// a Pod ends, so a Pod needs a `preStop` hook that sleeps for some.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends only the wait.
    pub async fn shutdown(&self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl fmt::Debug for WebhookServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookServer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
