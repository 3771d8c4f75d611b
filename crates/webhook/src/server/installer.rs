//! Applies the configurations at the start, after changes, and periodically.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use lariat_core::describe;
use tokio::sync::watch;
use tokio::time;

use crate::alerts::{Alerts, Subject};
use crate::certificates::Shown;
use crate::configuration::{Described, Unwanted, apply, prune};
use crate::endpoint::Endpoint;
use crate::error::WebhookError;

/// The first pause after a failed attempt, which doubles with each further one.
const PAUSE: Duration = Duration::from_secs(1);
/// The interval at which unchanged configurations are applied, and the longest pause after a failed attempt.
///
/// Other clients may have changed them, above all the last replica of the release before.
const AGAIN: Duration = Duration::from_secs(60);
/// The time limit of an attempt.
const ATTEMPT: Duration = Duration::from_secs(60);

/// Everything that applying the configurations needs.
pub(crate) struct Installer {
    pub(crate) described: Described,
    pub(crate) endpoint: Endpoint,
    pub(crate) client: Client,
    /// The port on which the server listens.
    pub(crate) port: u16,
}

/// The installer of a server that listens.
pub(super) struct Installing {
    pub(super) installer: Installer,
    pub(super) shown: Arc<Shown>,
    pub(super) alerts: Alerts,
    /// Set once the configurations are applied.
    pub(super) applied: watch::Sender<bool>,
}

impl Installing {
    /// Applies the configurations now, whenever the authority changes, and periodically.
    pub(super) async fn run(self) {
        let mut authority = self.shown.authority();
        let mut pause = PAUSE;
        loop {
            // Marked as seen before the apply: a change during the apply ends the next wait immediately.
            let present = authority.borrow_and_update().clone();
            let attempt = time::timeout(ATTEMPT, self.attempt(present));
            let succeeded = match attempt.await {
                Ok(succeeded) => succeeded,
                Err(_) => self.note(
                    Subject::Configurations,
                    Err(WebhookError::NoAnswer(ATTEMPT)),
                ),
            };
            let wait = if succeeded {
                pause = PAUSE;
                AGAIN
            } else {
                let wait = pause;
                pause = (pause * 2).min(AGAIN);
                wait
            };
            // The sender is dropped when the server stops.
            if let Ok(Err(_)) = time::timeout(wait, authority.changed()).await {
                return;
            }
        }
    }

    /// Applies and removes once; returns whether both succeeded.
    async fn attempt(&self, authority: Option<String>) -> bool {
        let unwanted = match self.apply(authority).await {
            Ok(unwanted) => unwanted,
            Err(error) => return self.note(Subject::Configurations, Err(error)),
        };
        self.note(Subject::Configurations, Ok(()));
        // Last, so that no request goes unreviewed between the removal of an old configuration and its successor.
        let (client, name) = (&self.installer.client, &self.installer.described.name);
        let outcome = prune(client, name, &unwanted).await;
        self.note(Subject::Pruning, outcome)
    }

    /// Applies the configurations, and records the authority that they have.
    async fn apply(&self, authority: Option<String>) -> Result<Unwanted, WebhookError> {
        // A configuration never leads to a certificate that API servers would refuse.
        let accepted = self.shown.check_with(authority.as_deref());
        accepted.map_err(WebhookError::Certificate)?;
        let Installer {
            described,
            endpoint,
            client,
            port,
        } = &self.installer;
        let configurations = described.configurations(endpoint, authority.as_deref(), *port);
        let unwanted = apply(client, described, configurations).await?;
        self.shown.was_injected(authority);
        self.applied.send_replace(true);
        Ok(unwanted)
    }

    fn note(&self, subject: Subject, outcome: Result<(), WebhookError>) -> bool {
        let succeeded = outcome.is_ok();
        let outcome = outcome.map_err(|error| describe(&error));
        self.alerts.set(subject, outcome);
        succeeded
    }
}
