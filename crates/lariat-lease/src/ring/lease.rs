//! The requests of a member: for its own lease, and for expired ones of others.

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
    pub(super) api: &'a Api<Object>,
    pub(super) config: &'a Lease,
    /// Its name, which is unique: this process does not use it again after it lost the lease.
    pub(super) name: Arc<str>,
    pub(super) namespace: &'a str,
    pub(super) identity: Arc<str>,
    /// How the member divides objects; empty if by owner.
    division: &'a str,
    known: Option<Object>,
    refusals: Refusals,
    /// How many renewals had to read the lease first.
    pub(super) slow: u64,
}

/// The result of an attempt to create or renew the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Renewal {
    /// The lease is held; its time counts from when the request was sent.
    Held { sent: Instant },
    /// Another attempt may succeed.
    Failed,
    /// The lease does not belong to this member any more.
    Lost(String),
}

impl<'a> OwnLease<'a> {
    pub(super) fn new(
        api: &'a Api<Object>,
        config: &'a Lease,
        name: Arc<str>,
        namespace: &'a str,
        identity: Arc<str>,
        division: &'a str,
    ) -> Self {
        Self {
            api,
            config,
            name,
            namespace,
            identity,
            division,
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
            // An earlier attempt may have reached the server, or the lease has another holder.
            _ => self.read_and_renew(acks).await,
        }
    }

    async fn read_and_renew(&mut self, acks: &BTreeSet<Arc<str>>) -> Renewal {
        let object = match self.get(&self.name).await {
            Answer::Object(object) => *object,
            Answer::Absent if self.known.is_some() => {
                return Renewal::Lost("its lease does not exist any more".to_owned());
            }
            _ => return Renewal::Failed,
        };
        let known = self.known.as_ref();
        let is_other = known.is_some_and(|known| known.metadata.uid != object.metadata.uid);
        let holder = Record::of(&object).holder;
        if is_other || holder != self.identity {
            return Renewal::Lost(if holder.is_empty() {
                "another member took its lease after it had expired".to_owned()
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

    fn held(&mut self, object: Object, sent: Instant) -> Renewal {
        self.known = Some(object);
        Renewal::Held { sent }
    }

    async fn create(&self) -> (Instant, Answer) {
        let record = Record::new(&self.identity, self.config.seconds(), moment().wall);
        let unlabelled = record.create(&self.name, self.namespace);
        let lease = labelled(unlabelled, &self.config.name, self.division);
        let sent = Instant::now();
        let params = PostParams::default();
        let created = self.api.create(&params, &lease);
        (sent, self.answer(created).await)
    }

    async fn update(&self, known: &Object, acks: &BTreeSet<Arc<str>>) -> (Instant, Answer) {
        let record = Record {
            acquired: Record::of(known).acquired,
            ..Record::new(&self.identity, self.config.seconds(), moment().wall)
        };
        let sent = Instant::now();
        (sent, self.replace(&renewed(&record, known, acks)).await)
    }

    /// Takes a lease from a holder that has let it expire; returns the released lease.
    ///
    /// The holder may have renewed it just now. Then its state differs, or the update meets a conflict.
    pub(super) async fn take_away(&self, expired: &Object) -> Option<Object> {
        let name = expired.metadata.name.as_deref()?;
        let Answer::Object(now) = self.get(name).await else {
            return None;
        };
        if !is_same_state(&now, expired) {
            return None;
        }
        let record = Record::of(&now);
        let released = Record {
            transitions: record.transitions.saturating_add(1),
            ..record.released(moment().wall)
        };
        match self.replace(&released.replace(&now)).await {
            Answer::Object(object) => Some(*object),
            _ => None,
        }
    }

    /// Releases the lease, within the renew deadline.
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

    /// Reads and releases the lease if it is held.
    ///
    /// Returns whether it is not held any more.
    async fn release_if_held(&self) -> bool {
        let object = match self.get(&self.name).await {
            Answer::Object(object) => object,
            Answer::Absent => return true,
            Answer::Conflict | Answer::Failed => return false,
        };
        let record = Record::of(&object);
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

    async fn get(&self, name: &str) -> Answer {
        self.answer(self.api.get(name)).await
    }

    async fn replace(&self, object: &Object) -> Answer {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let params = PostParams::default();
        self.answer(self.api.replace(name, &params, object)).await
    }

    async fn answer(&self, sent: impl Future<Output = kube::Result<Object>>) -> Answer {
        let timeout = self.timeout();
        self.refusals.answer(&self.name, timeout, sent).await
    }

    fn timeout(&self) -> Duration {
        (self.config.renew_deadline / 2).max(SHORTEST_TIMEOUT)
    }
}
