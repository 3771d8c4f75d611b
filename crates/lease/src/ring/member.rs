//! The task by which a process joins a ring, stays in it, and leaves it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use kube::Client;
use kube::api::Api;

use super::config::Sharding;
use super::shards::Shards;
use super::term::{Membership, Term};
use crate::config::{own_identity, own_namespace};
use crate::error::LeaseError;
use crate::leadership::Leadership;

/// A member of a ring: joins it, handles a share of its keys, and leaves it.
///
/// Its [`Leadership`] shows whether this process is a member: from when it has joined until it leaves, or until it
/// cannot renew its lease in time. Its [`Shards`] show which keys belong to it.
///
/// At any time at most one process holds a key, under the same conditions as in an election: no clock runs faster than
/// another by more than the ratio of lease duration to renew deadline, and leases are not edited by hand. If a server
/// is restored from a backup that is older than a member's lease, the member notices with its next renewal. Until then,
/// only a process that joins an otherwise empty ring can hold the same keys.
///
/// ```no_run
/// use lariat::lease::{LeaseError, RingMember, ShardKey};
/// use lariat::{Gvk, Lease, ObjectKey};
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
    /// The parts that every term uses.
    membership: Membership,
}

impl RingMember {
    /// Creates a member, which does nothing until it [runs](Self::run).
    ///
    /// # Errors
    ///
    /// If the configuration is invalid (see [`Lease::validate`](crate::Lease::validate)), or if the name of the ring
    /// is longer than 54 characters.
    pub fn new(client: Client, config: Sharding) -> Result<Self, LeaseError> {
        let lease = &config.lease;
        lease.validate()?;
        // A label value has at most 63 characters, and `-xxxxxxxx` takes nine.
        if lease.name.len() > 54 {
            return Err(LeaseError::Invalid {
                lease: lease.name.clone(),
                reason: "the name of a ring must not be longer than 54 characters: it is the value of a label, and each lease adds nine"
                    .to_owned(),
            });
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
                shards: Shards::new(leadership.clone()),
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

    /// Returns the same member, which sends its requests through another client.
    ///
    /// Both have one [membership](Self::leadership); run only one of them at a time. See [`Elector::through`].
    ///
    /// [`Elector::through`]: crate::Elector::through
    #[must_use]
    pub fn through(&self, client: Client) -> Self {
        let Membership {
            shards,
            leadership,
            config,
            ..
        } = &self.membership;
        Self {
            membership: Membership {
                api: Api::namespaced(client, leadership.namespace()),
                shards: shards.clone(),
                leadership: leadership.clone(),
                config: config.clone(),
            },
        }
    }

    /// Sets the membership to standby before a further [run](Self::run).
    ///
    /// After a run the membership is [`LeadershipState::Ended`](crate::LeadershipState::Ended) until the next run is
    /// polled for the first time. A task that waits for the membership in between would return as if the next run had
    /// ended.
    pub fn standby(&self) {
        self.membership.leadership.stands_by(None);
    }

    /// Joins the ring once `ready` resolves, and leaves it once `stop` does.
    ///
    /// Until `ready` resolves, the process watches the ring without joining it, so that [`Shards::caches_content`]
    /// knows the approximate share in advance. All calls must have ended when `stop` resolves.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Lost`] if the lease was not renewed in time, or if another process took it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the membership but does not release the lease. Other members get its keys when it has
    /// expired.
    pub async fn run(
        &self,
        ready: impl Future<Output = ()>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), LeaseError> {
        // Also when this future is dropped, because the lease is not renewed any more.
        let _ended = Ended(self);
        self.standby();
        let mut stop = pin!(stop);
        // Watching needs no lease: a process that stops before it has joined leaves nothing behind.
        let mut term = Term::new(&self.membership);
        tokio::select! {
            biased;
            () = stop.as_mut() => return Ok(()),
            () = ready => {}
            () = term.watch_only() => {}
        }
        loop {
            let reason = tokio::select! {
                biased;
                () = stop.as_mut() => None,
                reason = term.run() => Some(reason),
            };
            match reason {
                // It had not handled any key, so losing the lease is no error: it joins again, with a new lease.
                Some(reason) if !term.has_joined() => {
                    tracing::debug!(
                        ring = self.membership.config.lease.name,
                        "joining the ring again: {reason}"
                    );
                    // A new term gets a new lease name, so a late request of the old one cannot affect it.
                    term.pause().await;
                    term = Term::new(&self.membership);
                }
                Some(reason) => return Err(self.lost(reason)),
                None => {
                    // Ended before the release, so that nothing acts as a member after others have taken its keys.
                    self.end();
                    // A write of a call that was dropped for a hand-over may still arrive. Then the lease expires.
                    if self.membership.config.lease.releases && !term.awaits_writes() {
                        term.release().await;
                    }
                    return Ok(());
                }
            }
        }
    }

    /// Ends the membership and returns the error.
    fn lost(&self, reason: String) -> LeaseError {
        self.end();
        let lease = self.membership.leadership.lease().to_owned();
        let identity = self.membership.leadership.identity();
        tracing::warn!(%lease, identity, "lost the membership in the ring: {reason}");
        LeaseError::Lost { lease, reason }
    }

    /// Ends the membership, until the next run.
    fn end(&self) {
        self.membership.leadership.end();
        self.membership.shards.end();
    }
}

/// Ends the membership when a run returns or is dropped.
struct Ended<'a>(&'a RingMember);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
