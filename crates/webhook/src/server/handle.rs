//! A running server, from start to stop.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::health::WebhookHealth;
use super::installer::{Installer, Installing};
use super::routes::Routes;
use crate::alerts::Alerts;
use crate::certificates::{Keeper, Shown};
use crate::error::WebhookError;

/// A running server of webhooks.
///
/// Dropping the handle stops the server without waiting for it.
#[must_use = "dropping the handle stops the server"]
pub struct WebhookServer {
    address: SocketAddr,
    shown: Arc<Shown>,
    health: WebhookHealth,
    /// Whether the configurations were applied; true if there are none to apply.
    applied: watch::Receiver<bool>,
    tasks: TaskTracker,
    stopping: CancellationToken,
    _stops: DropGuard,
}

/// Everything that a server is started with.
pub(crate) struct Start {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) keeper: Keeper,
    pub(crate) routes: Routes,
    pub(crate) installer: Option<Installer>,
}

/// Starts a server, and applies the configurations in the background.
pub(crate) fn start(start: Start) -> Result<WebhookServer, WebhookError> {
    let shown = start.keeper.shown();
    // The configuration asks for the certificate in each handshake, so it is built only once.
    let tls = shown.config().map_err(WebhookError::Tls)?;
    let (tasks, stopping) = (TaskTracker::new(), CancellationToken::new());
    let alerts = Alerts::new(start.routes.metrics.clone());
    let health = WebhookHealth::new(Arc::clone(&shown), stopping.clone(), alerts.clone());
    let router = start.routes.router(health.clone());
    tasks.spawn(lariat_http::serve_tls(
        "webhooks",
        start.listener,
        tls,
        router,
        stopping.clone(),
    ));
    let kept = start.keeper.run(alerts.clone());
    tasks.spawn(stopping.clone().run_until_cancelled_owned(kept));
    let (sender, applied) = watch::channel(start.installer.is_none());
    if let Some(installer) = start.installer {
        // After the server was started: an API server may call a webhook as soon as it is configured.
        let installing = Installing {
            installer,
            shown: Arc::clone(&shown),
            alerts,
            applied: sender,
        };
        let installed = installing.run();
        tasks.spawn(stopping.clone().run_until_cancelled_owned(installed));
    }
    // A closed tracker ends its wait once all tasks have ended.
    tasks.close();
    tracing::info!(address = %start.address, "webhooks are served");
    Ok(WebhookServer {
        address: start.address,
        shown,
        health,
        applied,
        tasks,
        stopping: stopping.clone(),
        _stops: stopping.drop_guard(),
    })
}

impl WebhookServer {
    /// Returns the address on which the server listens, with the actual port.
    ///
    /// ```no_run
    /// use lariat::webhook::{Certificates, WebhookError, Webhooks};
    ///
    /// # async fn example(webhooks: Webhooks, certificates: Certificates) -> Result<(), WebhookError> {
    /// let server = webhooks.serve("127.0.0.1:0", certificates).await?;
    /// println!("https://{}", server.address());
    /// # server.shutdown().await;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the authorities that clients must trust, in PEM.
    ///
    /// `None` if another program injects them.
    #[must_use]
    pub fn authority(&self) -> Option<String> {
        self.shown.authority().borrow().clone()
    }

    /// Waits until the configurations have been applied once.
    ///
    /// Returns whether they were; `false` if the server stops before. Without an [endpoint](crate::Webhooks::endpoint)
    /// there is nothing to wait for. While the apply fails it is tried again, and the reason is among the
    /// [alerts](WebhookHealth::alerts). API servers learn of configurations by a watch, up to some seconds later.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only ends the wait.
    #[allow(
        clippy::must_use_candidate,
        reason = "most callers stop the server themselves"
    )]
    pub async fn applied(&self) -> bool {
        let mut applied = self.applied.clone();
        applied.wait_for(|is_applied| *is_applied).await.is_ok()
    }

    /// Returns the health of the server, for probes.
    #[must_use]
    pub fn health(&self) -> WebhookHealth {
        self.health.clone()
    }

    /// Stops the server, and waits for running requests, for at most ten seconds.
    ///
    /// No further connections are accepted. The configurations are kept, because other replicas may serve the webhooks;
    /// without another replica, calls fail until the next start.
    /// API servers take some seconds to notice that a Pod terminates, so the Pod needs a `preStop` hook that sleeps for
    /// a few seconds.
    ///
    /// ```no_run
    /// use lariat::webhook::WebhookServer;
    ///
    /// # async fn example(server: WebhookServer) {
    /// lariat::termination().await;
    /// server.shutdown().await;
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only ends the wait.
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
