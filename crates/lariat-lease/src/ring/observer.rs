//! Watching the leases of a ring.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease as Object;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use tokio::sync::mpsc;
use tokio::time;

use super::record::RING;
use crate::request::Refusals;

/// How long a watch stays open, in seconds; the server's own limit is higher.
const WATCH_SECONDS: u32 = 290;

/// An observation of a ring's leases.
#[derive(Debug)]
pub(super) enum Sight {
    /// All leases.
    All(Vec<Object>),
    Seen(Box<Object>),
    Deleted(String),
}

/// Lists and watches the leases of a ring.
pub(super) struct Observer {
    pub(super) api: Api<Object>,
    pub(super) ring: String,
    /// The time limit of a request, and of a watch's silence: it shows the own renewals too.
    pub(super) patience: Duration,
    /// The delay after a failure.
    pub(super) pause: Duration,
    pub(super) refusals: Refusals,
}

impl Observer {
    /// Lists and watches until the receiver is dropped.
    pub(super) async fn run(self, sights: mpsc::Sender<Sight>) {
        let ended = sights.closed();
        tokio::select! {
            biased;
            () = ended => {}
            () = self.observe(&sights) => {}
        }
    }

    async fn observe(&self, sights: &mpsc::Sender<Sight>) {
        loop {
            let reason = self.list_and_watch(sights).await.err().unwrap_or_default();
            tracing::debug!(
                ring = self.ring,
                reason,
                "the leases of the ring are read again"
            );
            time::sleep(self.pause).await;
        }
    }

    async fn list_and_watch(&self, sights: &mpsc::Sender<Sight>) -> Result<(), String> {
        let selector = format!("{RING}={}", self.ring);
        // Without a version, so that the result is no older than the request.
        let params = ListParams::default().labels(&selector);
        let list = time::timeout(self.patience, self.api.list(&params))
            .await
            .map_err(|_| "no answer to a list".to_owned())?
            .map_err(|error| self.failed(&error))?;
        let version = list.metadata.resource_version.unwrap_or_default();
        send(sights, Sight::All(list.items)).await?;
        let params = WatchParams::default()
            .labels(&selector)
            .timeout(WATCH_SECONDS);
        let opened = time::timeout(self.patience, self.api.watch(&params, &version))
            .await
            .map_err(|_| "no answer to a watch".to_owned())?;
        let mut events = opened.map_err(|error| self.failed(&error))?.boxed();
        loop {
            let event = time::timeout(self.patience, events.try_next())
                .await
                .map_err(|_| "the watch is silent".to_owned())?;
            let sight = match event.map_err(|error| error.to_string())? {
                Some(WatchEvent::Added(lease) | WatchEvent::Modified(lease)) => {
                    Sight::Seen(Box::new(lease))
                }
                Some(WatchEvent::Deleted(lease)) => {
                    Sight::Deleted(lease.metadata.name.unwrap_or_default())
                }
                Some(WatchEvent::Bookmark(_)) => continue,
                Some(WatchEvent::Error(status)) => return Err(status.message),
                // It has ended as usual; the list finds what was missed meanwhile.
                None => return Ok(()),
            };
            send(sights, sight).await?;
        }
    }
}

impl Observer {
    fn failed(&self, error: &kube::Error) -> String {
        self.refusals.failed(&self.ring, error);
        error.to_string()
    }
}

async fn send(sights: &mpsc::Sender<Sight>, sight: Sight) -> Result<(), String> {
    let sent = sights.send(sight).await;
    sent.map_err(|_| "the receiver was dropped".to_owned())
}
