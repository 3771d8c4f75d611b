//! Lists and watches the leases of a ring.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease as Object;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use tokio::sync::mpsc;
use tokio::time;

use super::record::RING;
use super::state::Observation;
use crate::request::Refusals;

/// How long a watch stays open, in seconds. The server's own limit is higher.
const WATCH_SECONDS: u32 = 290;

/// Lists and watches the leases of a ring.
pub(super) struct Observer {
    /// Sends the requests.
    pub(super) api: Api<Object>,
    /// The name of the ring.
    pub(super) ring: String,
    /// The timeout of a request, and of a silent watch.
    ///
    /// A working watch is never silent for that long: it shows the own renewals too.
    pub(super) timeout: Duration,
    /// The delay before the leases are listed again.
    pub(super) pause: Duration,
    /// Logs refused requests once.
    pub(super) refusals: Refusals,
}

impl Observer {
    /// Lists and watches until the receiver is dropped.
    pub(super) async fn run(self, observations: mpsc::Sender<Observation>) {
        let ended = observations.closed();
        tokio::select! {
            biased;
            () = ended => {}
            () = self.observe(&observations) => {}
        }
    }

    /// Lists and watches again and again.
    async fn observe(&self, observations: &mpsc::Sender<Observation>) {
        loop {
            let reason = self
                .list_and_watch(observations)
                .await
                .err()
                .unwrap_or_default();
            tracing::debug!(
                ring = self.ring,
                reason,
                "listing the leases of the ring again"
            );
            // Also after a watch that ended normally, so that a server that closes watches immediately is not flooded
            // with lists.
            time::sleep(self.pause).await;
        }
    }

    /// Lists the leases and watches them until the watch ends.
    async fn list_and_watch(&self, observations: &mpsc::Sender<Observation>) -> Result<(), String> {
        let selector = format!("{RING}={}", self.ring);
        // Without a resource version the API server answers with the latest state, not from a cache that may be behind.
        // A member that joins relies on seeing all earlier ones.
        let params = ListParams::default().labels(&selector);
        let list = time::timeout(self.timeout, self.api.list(&params))
            .await
            .map_err(|_| "no answer to a list".to_owned())?
            .map_err(|error| self.failed(&error))?;
        let version = list.metadata.resource_version.unwrap_or_default();
        // Before the watch is opened, so that the receiver gets observations in the order of their versions.
        send(observations, Observation::All(list.items)).await?;
        let params = WatchParams::default()
            .labels(&selector)
            .timeout(WATCH_SECONDS);
        let opened = time::timeout(self.timeout, self.api.watch(&params, &version))
            .await
            .map_err(|_| "no answer to a watch".to_owned())?;
        let mut events = opened.map_err(|error| self.failed(&error))?.boxed();
        loop {
            let event = time::timeout(self.timeout, events.try_next())
                .await
                .map_err(|_| "the watch is silent".to_owned())?;
            let observation = match event.map_err(|error| error.to_string())? {
                Some(WatchEvent::Added(lease) | WatchEvent::Modified(lease)) => {
                    Observation::Seen(Box::new(lease))
                }
                Some(WatchEvent::Deleted(lease)) => {
                    Observation::Deleted(lease.metadata.name.unwrap_or_default())
                }
                Some(WatchEvent::Bookmark(_)) => continue,
                Some(WatchEvent::Error(status)) => return Err(status.message),
                // The watch has reached its time limit. The next list finds what is missed in between.
                None => return Ok(()),
            };
            send(observations, observation).await?;
        }
    }
}

impl Observer {
    /// Logs the failure of a request and returns its text.
    fn failed(&self, error: &kube::Error) -> String {
        self.refusals.failed(&self.ring, error);
        error.to_string()
    }
}

/// Sends an observation; fails if the receiver was dropped.
async fn send(
    observations: &mpsc::Sender<Observation>,
    observation: Observation,
) -> Result<(), String> {
    let sent = observations.send(observation).await;
    sent.map_err(|_| "the receiver was dropped".to_owned())
}
