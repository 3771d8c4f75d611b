//! Applies the configurations, at the start and when the authority changes.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use lariat_core::describe;
use tokio::sync::watch;
use tokio::time;

use super::health::WebhookHealth;
use crate::certificates::Shown;
use crate::configuration::{Described, apply};
use crate::error::WebhookError;
use crate::reach::Reach;

/// The pause after a failed attempt; it doubles up to the longest one.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How often configurations are applied although nothing has changed here: others may have changed them.
const AGAIN: Duration = Duration::from_secs(600);

/// What is applied, and where.
pub(crate) struct Installer {
    pub(crate) described: Described,
    pub(crate) reach: Reach,
    pub(crate) client: Client,
    /// The port listened on.
    pub(crate) port: u16,
}

impl Installer {
    /// Applies the configurations once, with an authority, and notes that they have it.
    pub(super) async fn apply(
        &self,
        authority: Option<String>,
        shown: &Shown,
    ) -> Result<(), WebhookError> {
        let configurations =
            self.described
                .configurations(&self.reach, authority.as_deref(), self.port);
        apply(&self.client, &self.described.name, &configurations).await?;
        shown.was_injected(authority);
        Ok(())
    }

    /// Applies them whenever the authority has changed, and from time to time.
    pub(super) async fn run(
        self,
        shown: Arc<Shown>,
        mut authority: watch::Receiver<Option<String>>,
        health: WebhookHealth,
    ) {
        let mut pause = PAUSE;
        let mut wait = AGAIN;
        loop {
            let changed = time::timeout(wait, authority.changed()).await;
            // The certificates are kept no longer: the server stops.
            if matches!(changed, Ok(Err(_))) {
                return;
            }
            let present = authority.borrow_and_update().clone();
            match self.apply(present, &shown).await {
                Ok(()) => {
                    health.applied(Ok(()));
                    (pause, wait) = (PAUSE, AGAIN);
                }
                Err(error) => {
                    let problem = describe(&error);
                    if health.applied(Err(problem.clone())) {
                        tracing::warn!("configurations of webhooks are not up to date: {problem}");
                    }
                    wait = pause;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}
