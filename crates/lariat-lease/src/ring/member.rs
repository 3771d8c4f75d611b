//! The task by which a process joins a ring, stays in it, and leaves it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use kube::Client;
use kube::api::Api;

use super::config::Sharding;
use super::label::ShardLabel;
use super::shards::Shards;
use super::term::{Membership, Term};
use crate::config::{own_identity, own_namespace};
use crate::error::LeaseError;
use crate::leadership::Leadership;

/// A member of a ring: joins it, handles a share of its keys, and leaves it.
///
/// Its [`Leadership`] shows whether this process is a member: from when it has joined until it leaves or cannot renew
/// its lease in time. Its [`Shards`] shows which keys belong to it. At any moment at most one process has a key, under
/// the same conditions as in an election: no clock runs faster than the ratio of lease duration to renew deadline, and
/// leases are not edited by hand. If a server is restored from a backup that is older than a lease, the lease's holder
/// notices with its next renewal; only a process that joins an otherwise empty ring in between can meet it.
///
/// ```no_run
/// use lariat_core::{Gvk, ObjectKey};
/// use lariat_lease::{Lease, LeaseError, RingMember, ShardKey};
///
/// # async fn example(client: kube::Client) -> Result<(), LeaseError> {
/// let member = RingMember::new(client, Lease::new("shop-operator").into())?;
/// let (membership, shards) = (member.leadership(), member.shards());
/// let work = async {
///     membership.acquired().await;
///     let key = ObjectKey::namespaced("shop", "order-1");
///     if let Some(_permit) = shards.enter(ShardKey::of_key(&Gvk::new("", "v1", "ConfigMap"), &key)) {
///         println!("{key} is ours");
///     }
/// };
/// let (ended, ()) = tokio::join!(member.run(async {}, std::future::pending()), work);
/// ended
/// # }
/// ```
#[derive(Debug)]
pub struct RingMember {
    membership: Membership,
}

impl RingMember {
    /// Creates a member, which does nothing until it runs.
    ///
    /// # Errors
    ///
    /// The configuration is invalid: see [`Lease::validate`](crate::Lease::validate); or the name of the ring is too
    /// long for the value of a label.
    pub fn new(client: Client, config: Sharding) -> Result<Self, LeaseError> {
        let lease = &config.lease;
        lease.validate()?;
        if lease.name.len() > 54 {
            return Err(LeaseError::Invalid {
                lease: lease.name.clone(),
                reason: "the name of a ring has at most 54 characters: it is a label's value, and each lease adds nine"
                    .to_owned(),
            });
        }
        if let Some(Err(reason)) = config.label.as_ref().map(ShardLabel::check) {
            let lease = lease.name.clone();
            return Err(LeaseError::Invalid { lease, reason });
        }
        let namespace = lease
            .namespace
            .clone()
            .or_else(own_namespace)
            .unwrap_or_else(|| client.default_namespace().to_owned());
        let identity: Arc<str> = lease.identity.clone().unwrap_or_else(own_identity).into();
        let leadership = Leadership::new(&namespace, &lease.name, identity, lease.duration);
        Ok(Self {
            membership: Membership {
                api: Api::namespaced(client, &namespace),
                shards: Shards::new(leadership.clone(), config.label.clone()),
                leadership,
                config,
            },
        })
    }

    /// Returns the membership of this process.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.membership.leadership.clone()
    }

    /// Returns the share of this process.
    #[must_use]
    pub fn shards(&self) -> Shards {
        self.membership.shards.clone()
    }

    /// Sets the membership to standby, before a [run](Self::run) begins.
    ///
    /// After a run the membership has ended, until the next run is first polled. A task that waits for the membership
    /// meanwhile would take that for the end of the next run.
    pub fn stand_by(&self) {
        self.membership.leadership.stands_by(None);
    }

    /// Joins the ring once `warm` resolves, and leaves it once `stop` does.
    ///
    /// Until `warm` resolves, it observes the ring without joining it, so that [`Shards::keeps`] knows the approximate
    /// share in advance. When `stop` resolves, no call may be running any more.
    ///
    /// # Errors
    ///
    /// The membership was lost: the lease was not renewed in time, or another process took it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the lease as it is; its keys wait until it expires.
    pub async fn run(
        &self,
        warm: impl Future<Output = ()>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), LeaseError> {
        let _ended = Ended(self);
        self.stand_by();
        let mut stop = pin!(stop);
        let mut term = Term::new(&self.membership);
        tokio::select! {
            biased;
            () = stop.as_mut() => return Ok(()),
            () = warm => {}
            () = term.look_on() => {}
        }
        loop {
            let reason = tokio::select! {
                biased;
                () = stop.as_mut() => None,
                reason = term.run() => Some(reason),
            };
            match reason {
                // It had no keys yet.
                Some(reason) if !term.has_joined() => {
                    tracing::debug!(
                        ring = self.membership.config.lease.name,
                        "joins again: {reason}"
                    );
                    term.pause().await;
                    term = Term::new(&self.membership);
                }
                Some(reason) => return Err(self.lost(reason)),
                None => {
                    // Ended before the release, so that nothing acts as a member while the lease is given away.
                    self.end();
                    if self.membership.config.lease.releases {
                        term.release().await;
                    }
                    return Ok(());
                }
            }
        }
    }

    fn lost(&self, reason: String) -> LeaseError {
        self.end();
        let lease = self.membership.leadership.lease().to_owned();
        let identity = self.membership.leadership.identity();
        tracing::warn!(%lease, identity, "lost the membership in the ring: {reason}");
        LeaseError::Lost { lease, reason }
    }

    fn end(&self) {
        self.membership.leadership.end();
        self.membership.shards.end();
    }
}

/// Ends the membership when a run is dropped.
struct Ended<'a>(&'a RingMember);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
