//! Applies the configurations at the start, after changes, and periodically.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use lariat_core::describe;
use tokio::sync::watch;
use tokio::time;

use super::health::WebhookHealth;
use crate::certificates::Shown;
use crate::configuration::{Described, apply};
use crate::endpoint::Endpoint;
use crate::error::WebhookError;

/// The first pause after a failed attempt, which doubles with each further one.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The interval at which unchanged configurations are applied.
///
/// Other clients may have changed them.
const AGAIN: Duration = Duration::from_secs(600);

/// Everything that applying the configurations needs.
pub(crate) struct Installer {
    pub(crate) described: Described,
    pub(crate) endpoint: Endpoint,
    pub(crate) client: Client,
    /// The port on which the server listens.
    pub(crate) port: u16,
}

impl Installer {
    /// Applies the configurations once, and records the authority that they have.
    pub(super) async fn apply(
        &self,
        authority: Option<String>,
        shown: &Shown,
    ) -> Result<(), WebhookError> {
        let configurations =
            self.described
                .configurations(&self.endpoint, authority.as_deref(), self.port);
        apply(&self.client, &self.described.name, &configurations).await?;
        shown.was_injected(authority);
        Ok(())
    }

    /// Applies the configurations whenever the authority changes, and periodically.
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
            // The sender is dropped when the server stops.
            if matches!(changed, Ok(Err(_))) {
                return;
            }
            // Marked as seen before the apply: a change during the apply ends the next wait immediately.
            let present = authority.borrow_and_update().clone();
            match self.apply(present, &shown).await {
                Ok(()) => {
                    health.applied(Ok(()));
                    (pause, wait) = (PAUSE, AGAIN);
                }
                Err(error) => {
                    let problem = describe(&error);
                    if health.applied(Err(problem.clone())) {
                        tracing::warn!(
                            "cannot apply the configurations of the webhooks: {problem}"
                        );
                    }
                    wait = pause;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}
