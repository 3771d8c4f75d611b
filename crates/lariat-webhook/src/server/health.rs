//! The health of a server.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use crate::certificates::Shown;

/// The health of a server of webhooks. Clones share it.
#[derive(Debug, Clone)]
pub struct WebhookHealth {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shown: Arc<Shown>,
    stopping: CancellationToken,
    /// The reason why the configurations could not be applied the last time, if any.
    unapplied: RwLock<Option<String>>,
}

impl WebhookHealth {
    pub(super) fn new(shown: Arc<Shown>, stopping: CancellationToken) -> Self {
        Self {
            inner: Arc::new(Inner {
                shown,
                stopping,
                unapplied: RwLock::new(None),
            }),
        }
    }

    /// Checks that the webhooks can be called.
    ///
    /// The server must be running, and certificates and configurations must be up to date. `/readyz` of the server
    /// returns the result.
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
    /// The reason why they cannot be called.
    pub fn check(&self) -> Result<(), String> {
        if self.inner.stopping.is_cancelled() {
            return Err("the webhooks are stopping".to_owned());
        }
        if let Some(problem) = self.inner.shown.problem() {
            return Err(format!("the certificate cannot be replaced: {problem}"));
        }
        match &*self.inner.unapplied.read() {
            Some(problem) => Err(problem.clone()),
            None => Ok(()),
        }
    }

    /// Records the result of applying; returns whether a problem is new.
    pub(super) fn applied(&self, outcome: Result<(), String>) -> bool {
        let problem = outcome.err();
        let mut last = self.inner.unapplied.write();
        let is_news = problem.is_some() && *last != problem;
        *last = problem;
        is_news
    }
}
