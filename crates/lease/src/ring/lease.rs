//! The requests of a member, for its own lease and for expired leases of others.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease as Object;
use kube::api::{Api, DeleteParams, PostParams, Preconditions};
use tokio::time::{self, Instant};

use super::record::{is_same_state, labelled, renewed};
use crate::clock::{SHORTEST_TIMEOUT, moment};
use crate::config::Lease;
use crate::record::Record;
use crate::request::{Answer, Refusals};

/// The lease of a member.
pub(super) struct OwnLease<'a> {
    /// Sends the requests.
    pub(super) api: &'a Api<Object>,
    /// The times of the ring.
    pub(super) config: &'a Lease,
    /// The name of the lease.
    ///
    /// It is unique: a process that has lost its lease joins with another name, so an old renewal cannot revive it.
    pub(super) name: Arc<str>,
    /// The namespace of the ring.
    pub(super) namespace: &'a str,
    /// The holder identity of this process.
    pub(super) identity: Arc<str>,
    /// The lease as the server last stored it; `None` before it is created.
    known: Option<Object>,
    /// Logs refused requests once.
    refusals: Refusals,
    /// How many renewals had to read the lease first.
    pub(super) slow: u64,
}

/// The result of an attempt to create or renew the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Renewal {
    /// The lease is held, counted from when the request was sent.
    Held { sent: Instant },
    /// Another attempt may succeed.
    Failed,
    /// The lease does not belong to this member any more, for this reason.
    Lost(String),
}

impl<'a> OwnLease<'a> {
    /// Creates a lease that is not on the server yet.
    pub(super) fn new(
        api: &'a Api<Object>,
        config: &'a Lease,
        name: Arc<str>,
        namespace: &'a str,
        identity: Arc<str>,
    ) -> Self {
        Self {
            api,
            config,
            name,
            namespace,
            identity,
            known: None,
            refusals: Refusals::default(),
            slow: 0,
        }
    }

    /// Makes one attempt to create or renew the lease, with the members to acknowledge.
    pub(super) async fn renew(&mut self, acks: &BTreeSet<Arc<str>>) -> Renewal {
        let (sent, answer) = match &self.known {
            None => self.create().await,
            Some(known) => self.update(known, acks).await,
        };
        match answer {
            Answer::Object(object) => self.held(*object, sent),
            // An earlier attempt whose answer was lost may have reached the server, or the lease has another holder.
            // The read tells the two apart.
            _ => self.read_and_renew(acks).await,
        }
    }

    /// Reads the lease, and renews it if it still belongs to this member.
    async fn read_and_renew(&mut self, acks: &BTreeSet<Arc<str>>) -> Renewal {
        let object = match self.get(&self.name).await {
            Answer::Object(object) => *object,
            // The lease existed and was deleted, so other members may soon regard its keys as free. Creating it again
            // would be too late for members that have not seen it.
            Answer::Absent if self.known.is_some() => {
                return Renewal::Lost("its lease was deleted".to_owned());
            }
            // Absent before the first creation has succeeded: there is nothing to lose yet.
            _ => return Renewal::Failed,
        };
        let known = self.known.as_ref();
        // An object with another uid is a different lease under the same name.
        let is_other = known.is_some_and(|known| known.metadata.uid != object.metadata.uid);
        let holder = Record::of(&object).holder;
        if is_other || holder != self.identity {
            return Renewal::Lost(if holder.is_empty() {
                "its lease expired, and another member took it".to_owned()
            } else {
                format!("{holder} holds its lease")
            });
        }
        self.slow += 1;
        let (sent, answer) = self.update(&object, acks).await;
        match answer {
            Answer::Object(object) => self.held(*object, sent),
            _ => Renewal::Failed,
        }
    }

    /// Stores the lease for the next renewal.
    fn held(&mut self, object: Object, sent: Instant) -> Renewal {
        self.known = Some(object);
        Renewal::Held { sent }
    }

    /// Creates the lease; returns when the request was sent, and its answer.
    async fn create(&self) -> (Instant, Answer) {
        let record = Record::new(&self.identity, self.config.seconds(), moment().wall);
        let lease = record.create(&self.name, self.namespace);
        let lease = labelled(lease, &self.config.name);
        let sent = Instant::now();
        let params = PostParams::default();
        let created = self.api.create(&params, &lease);
        (sent, self.answer(created).await)
    }

    /// Updates the lease; returns when the request was sent, and its answer.
    async fn update(&self, known: &Object, acks: &BTreeSet<Arc<str>>) -> (Instant, Answer) {
        let record = Record {
            // A renewal keeps the time of the acquisition.
            acquired: Record::of(known).acquired,
            ..Record::new(&self.identity, self.config.seconds(), moment().wall)
        };
        let sent = Instant::now();
        (sent, self.replace(&renewed(&record, known, acks)).await)
    }

    /// Takes a lease from a holder that has let it expire; returns the released lease.
    ///
    /// `None` if the holder has renewed it in the meantime: then its state differs, or the update conflicts.
    pub(super) async fn take_away(&self, expired: &Object) -> Option<Object> {
        let name = expired.metadata.name.as_deref()?;
        let Answer::Object(now) = self.get(name).await else {
            return None;
        };
        // The lease expired according to an observation that may be old. Only if nothing has changed since may it be
        // taken, and the resource version of this read guards the update.
        if !is_same_state(&now, expired) {
            return None;
        }
        let record = Record::of(&now);
        let released = Record {
            transitions: record.transitions.saturating_add(1),
            // The transition changes the record, so that a late renewal by the holder conflicts and shows the loss.
            ..record.released(moment().wall)
        };
        match self.replace(&released.replace(&now)).await {
            Answer::Object(object) => Some(*object),
            _ => None,
        }
    }

    /// Releases the lease; gives up after the renew deadline.
    pub(super) async fn release(&mut self) {
        let tries = async {
            while !self.release_if_held().await {
                time::sleep(self.config.retry_period).await;
            }
        };
        let released = time::timeout(self.config.renew_deadline, tries).await;
        if released.is_err() {
            let lease = &self.name;
            tracing::warn!(%lease, "could not release the lease: its keys wait until it expires");
        }
    }

    /// Reads the lease and releases it if it is held.
    ///
    /// Returns whether this member does not hold it any more.
    async fn release_if_held(&self) -> bool {
        let object = match self.get(&self.name).await {
            Answer::Object(object) => object,
            Answer::Absent => return true,
            Answer::Conflict | Answer::Failed => return false,
        };
        let record = Record::of(&object);
        // Another member has taken it, and the release is done.
        if record.holder != self.identity {
            return true;
        }
        let released = record.released(moment().wall).replace(&object);
        matches!(
            self.replace(&released).await,
            Answer::Object(_) | Answer::Absent
        )
    }

    /// Deletes a released lease; a failure does no harm.
    pub(super) async fn clear_away(&self, released: &Object) {
        let metadata = &released.metadata;
        let params = DeleteParams {
            // Only this state of this object: if the name is used again, the new lease must stay.
            preconditions: Some(Preconditions {
                uid: metadata.uid.clone(),
                resource_version: metadata.resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        let name = metadata.name.as_deref().unwrap_or_default();
        if let Err(error) = self.api.delete(name, &params).await {
            tracing::debug!(lease = name, "a released lease was not deleted: {error}");
        }
    }

    /// Reads a lease.
    async fn get(&self, name: &str) -> Answer {
        self.answer(self.api.get(name)).await
    }

    /// Updates a lease; the object carries the resource version.
    async fn replace(&self, object: &Object) -> Answer {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let params = PostParams::default();
        self.answer(self.api.replace(name, &params, object)).await
    }

    /// Waits for the answer to a request; after the timeout it counts as failed.
    async fn answer(&self, sent: impl Future<Output = kube::Result<Object>>) -> Answer {
        let timeout = self.timeout();
        self.refusals.answer(&self.name, timeout, sent).await
    }

    /// Returns the timeout of a request.
    ///
    /// Half of the renew deadline, so that a hanging request leaves time for a second one.
    fn timeout(&self) -> Duration {
        (self.config.renew_deadline / 2).max(SHORTEST_TIMEOUT)
    }
}
