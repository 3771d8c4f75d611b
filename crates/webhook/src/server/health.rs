//! The health of a server.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::alerts::{Alerts, WebhookAlert};
use crate::certificates::Shown;

/// The health of a server of webhooks. Clones share it.
///
/// [`check`](Self::check) says whether calls can be answered, and decides whether the server gets any.
/// [`alerts`](Self::alerts) says what someone should look at while calls are answered.
#[derive(Debug, Clone)]
pub struct WebhookHealth {
    shown: Arc<Shown>,
    stopping: CancellationToken,
    alerts: Alerts,
}

impl WebhookHealth {
    pub(super) fn new(shown: Arc<Shown>, stopping: CancellationToken, alerts: Alerts) -> Self {
        Self {
            shown,
            stopping,
            alerts,
        }
    }

    /// Checks that calls can be answered.
    ///
    /// The server must not be stopping, and its certificate must be valid now and, if the
    /// [endpoint](crate::Webhooks::endpoint) is known, cover its name. `/readyz` of the server has the same result,
    /// without the reason. A renewal or an apply that fails does not count.
    ///
    /// ```no_run
    /// use lariat::webhook::WebhookServer;
    ///
    /// # fn example(server: &WebhookServer) {
    /// let health = server.health();
    /// if let Err(problem) = health.check() {
    ///     println!("not ready: {problem}");
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why they cannot be answered; it has no text of the API server.
    pub fn check(&self) -> Result<(), String> {
        self.checks().into_iter().try_for_each(|(_, result)| result)
    }

    /// Returns the failures that are tried again and affect no call yet.
    ///
    /// They are of a renewal, an apply or a removal. Each failure is logged once too, and is a series of [`Webhooks::metrics`](crate::Webhooks).
    #[must_use]
    pub fn alerts(&self) -> Vec<WebhookAlert> {
        self.alerts.raised()
    }

    /// Returns the checks of `/readyz` by name.
    pub(super) fn checks(&self) -> [(&'static str, Result<(), String>); 2] {
        let stopping = self.stopping.is_cancelled();
        let running = if stopping {
            Err("the webhooks are stopping".to_owned())
        } else {
            Ok(())
        };
        [("shutdown", running), ("certificate", self.shown.check())]
    }
}
