//! Whether webhooks can be called.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use crate::certificates::Shown;

/// The health of a server of webhooks; clones are the same.
#[derive(Debug, Clone)]
pub struct WebhookHealth {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shown: Arc<Shown>,
    stopping: CancellationToken,
    /// Why the configurations could not be applied the last time.
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

    /// Returns whether webhooks can be called: the server runs, and certificates and configurations are up to date.
    ///
    /// `/readyz` of the server answers it. A console takes it as a check:
    ///
    /// ```ignore
    /// let health = server.health();
    /// console.health_check(HealthCheck::new("webhooks", move || health.check()))
    /// ```
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn check(&self) -> Result<(), String> {
        if self.inner.stopping.is_cancelled() {
            return Err("the webhooks are stopping".to_owned());
        }
        if let Some(problem) = self.inner.shown.problem() {
            return Err(format!("the certificate is not replaced: {problem}"));
        }
        match &*self.inner.unapplied.read() {
            Some(problem) => Err(problem.clone()),
            None => Ok(()),
        }
    }

    /// Remembers whether the configurations could be applied; returns whether a problem is news.
    pub(super) fn applied(&self, outcome: Result<(), String>) -> bool {
        let problem = outcome.err();
        let mut last = self.inner.unapplied.write();
        let is_news = problem.is_some() && *last != problem;
        *last = problem;
        is_news
    }
}
