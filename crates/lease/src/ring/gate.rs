//! Admits the keys of a member's share and tracks the running calls.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::share::{Gained, ShardKey, Share};

/// Admits the keys of a member's share; clones share one gate.
///
/// When the share shrinks, the gate closes for the lost keys immediately. Their running calls continue;
/// [`drained`](Self::drained) waits for them, and [`revoke`](Self::revoke) ends them.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    /// The shared state.
    inner: Arc<Inner>,
}

/// The state that a gate and its permits share.
#[derive(Debug)]
struct Inner {
    /// The share and the running calls.
    state: Mutex<GateState>,
    /// The share, for tasks that follow it.
    share: watch::Sender<Share>,
    /// Notifies when a call for a lost key ends, and when calls are revoked.
    moves: watch::Sender<()>,
}

/// The state behind the lock of a gate.
#[derive(Debug)]
struct GateState {
    /// The keys that are admitted.
    share: Share,
    /// Which running calls may continue.
    allowed: Allowed,
    /// The keys of each running call, by its number; each has at least one.
    under_way: BTreeMap<u64, Vec<ShardKey>>,
    /// The number of calls so far.
    calls: u64,
    /// The keys that were in the share without a break since each follower has looked.
    kept: BTreeMap<u64, Share>,
    /// The number of followers so far.
    followers: u64,
}

/// The running calls that may continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Allowed {
    /// All of them.
    All,
    /// Those of keys in the share.
    Share,
}

/// The permission to handle a key, until it is dropped.
///
/// While it exists, no other member of the ring gets the key, nor those it was [extended](Self::extend) to. Returned by
/// [`Shards::enter`](crate::Shards::enter).
#[derive(Debug)]
#[must_use = "a permit that is dropped permits nothing"]
pub struct Permit {
    /// The gate.
    inner: Arc<Inner>,
    /// The number of the call.
    call: u64,
}

impl Gate {
    /// Creates a gate that admits nothing.
    pub(crate) fn new() -> Self {
        let inner = Inner {
            state: Mutex::new(GateState {
                share: Share::none(),
                allowed: Allowed::All,
                under_way: BTreeMap::new(),
                calls: 0,
                kept: BTreeMap::new(),
                followers: 0,
            }),
            share: watch::Sender::new(Share::none()),
            moves: watch::Sender::new(()),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Sets the share; returns whether it lost keys with running calls.
    pub(crate) fn set(&self, share: &Share) -> bool {
        let mut state = self.inner.state.lock();
        state.share = share.clone();
        for kept in state.kept.values_mut() {
            *kept = kept.and(share);
        }
        // Another change of the share begins another hand-over, whose calls get the full drain timeout.
        state.allowed = Allowed::All;
        // Share and running calls are compared under one lock, so a call that is admitted by the old share is either
        // counted here or not admitted any more.
        let is_drained = state.is_drained();
        // Receivers are woken outside the lock, because they look at the gate.
        drop(state);
        self.inner.share.send_if_modified(|known| {
            let is_new = known != share;
            *known = share.clone();
            is_new
        });
        !is_drained
    }

    /// Returns the share.
    ///
    /// It is up to date: [`follow`](Self::follow) may show a change a moment later than [`gained`](Self::gained).
    pub(crate) fn share(&self) -> Share {
        self.inner.state.lock().share.clone()
    }

    /// Returns a receiver of the share and its changes.
    pub(crate) fn follow(&self) -> watch::Receiver<Share> {
        self.inner.share.subscribe()
    }

    /// Adds a follower of what the share gains; returns its number.
    pub(super) fn add_follower(&self) -> u64 {
        let mut state = self.inner.state.lock();
        state.followers += 1;
        let (number, share) = (state.followers, state.share.clone());
        state.kept.insert(number, share);
        number
    }

    /// Removes a follower.
    pub(super) fn remove_follower(&self, number: u64) {
        self.inner.state.lock().kept.remove(&number);
    }

    /// Returns the keys that the share has gained since a follower has looked; none if there are none.
    pub(super) fn gained(&self, number: u64) -> Option<Gained> {
        let mut state = self.inner.state.lock();
        let now = state.share.clone();
        let kept = state.kept.get_mut(&number).filter(|kept| **kept != now)?;
        let kept = mem::replace(kept, now.clone());
        Some(Gained { kept, now })
    }

    /// Admits a call for a key if the key is in the share.
    pub(crate) fn enter(&self, key: ShardKey) -> Option<Permit> {
        let mut state = self.inner.state.lock();
        if !state.share.holds(key) {
            return None;
        }
        state.calls += 1;
        let call = state.calls;
        state.under_way.insert(call, vec![key]);
        Some(Permit {
            inner: Arc::clone(&self.inner),
            call,
        })
    }

    /// Waits until no call for a key outside the share is running.
    pub(crate) async fn drained(&self) {
        // Subscribed before the check, so that a call that ends in between is not missed.
        let mut moves = self.inner.moves.subscribe();
        while !self.inner.state.lock().is_drained() {
            // The gate owns the sender, so this cannot fail.
            let _ = moves.changed().await;
        }
    }

    /// Returns whether no call for a key outside the share is running.
    pub(crate) fn is_drained(&self) -> bool {
        self.inner.state.lock().is_drained()
    }

    /// Ends the running calls for keys outside the share.
    pub(crate) fn revoke(&self) {
        self.inner.state.lock().allowed = Allowed::Share;
        self.inner.moves.send_replace(());
    }
}

impl GateState {
    /// Returns whether no call for a key outside the share is running.
    fn is_drained(&self) -> bool {
        self.under_way.keys().all(|call| self.holds_all_of(*call))
    }

    /// Returns whether the share holds all keys of a running call.
    fn holds_all_of(&self, call: u64) -> bool {
        let mut keys = self.under_way.get(&call).into_iter().flatten();
        keys.all(|key| self.share.holds(*key))
    }
}

impl Permit {
    /// Extends the permission to another key, if that belongs to this process too.
    ///
    /// The key of an object changes with its controlling owner. Work that was admitted for one state of an object, and
    /// then finds a later one, needs the permission for that before it goes on.
    ///
    /// ```
    /// use lariat::lease::{Permit, ShardKey};
    ///
    /// fn goes_on(permit: &Permit, later: ShardKey) -> bool {
    ///     permit.extend(later)
    /// }
    /// # let _ = goes_on;
    /// ```
    #[must_use = "the permission may be refused"]
    pub fn extend(&self, key: ShardKey) -> bool {
        let mut state = self.inner.state.lock();
        let is_held = state.share.holds(key);
        if is_held && let Some(keys) = state.under_way.get_mut(&self.call) {
            let is_known = keys.contains(&key);
            keys.extend((!is_known).then_some(key));
        }
        is_held
    }

    /// Waits until the key must be given up because another member waits for it.
    ///
    /// Abort the work and drop the permit then: the hand-over waits for it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::lease::Permit;
    ///
    /// async fn guarded(permit: Permit, work: impl Future<Output = ()>) {
    ///     tokio::select! {
    ///         () = work => {}
    ///         () = permit.revoked() => println!("another member waits for the key"),
    ///     }
    /// }
    /// # let _ = |permit| guarded(permit, async {});
    /// ```
    pub async fn revoked(&self) {
        let mut moves = self.inner.moves.subscribe();
        loop {
            {
                let state = self.inner.state.lock();
                // The share is checked too: the key may have come back since the calls were revoked.
                if state.allowed == Allowed::Share && !state.holds_all_of(self.call) {
                    return;
                }
            }
            // The permit owns the sender, so this cannot fail.
            let _ = moves.changed().await;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.inner.state.lock();
        let is_lost = !state.holds_all_of(self.call);
        state.under_way.remove(&self.call);
        drop(state);
        // Only calls for lost keys are waited for. Without this check every call would wake the member's task.
        if is_lost {
            self.inner.moves.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use lariat_core::{Gvk, ObjectKey};

    use super::*;

    fn key(name: &str) -> ShardKey {
        ShardKey::of_key(&Gvk::new("", "v1", "Pod"), &ObjectKey::cluster(name))
    }

    #[test]
    fn no_key_is_admitted_before_there_is_a_share() {
        let gate = Gate::new();
        assert!(gate.enter(key("a")).is_none());
        gate.set(&Share::of("me", []));
        assert!(gate.enter(key("a")).is_some());
    }

    #[test]
    fn a_share_that_is_lost_is_drained_when_its_last_call_has_ended() {
        let gate = Gate::new();
        gate.set(&Share::of("me", []));
        let permits = [gate.enter(key("a")), gate.enter(key("a"))];
        assert!(gate.drained().now_or_never().is_some());
        assert!(gate.set(&Share::none()));
        assert!(gate.enter(key("a")).is_none());
        let [first, second] = permits.map(|it| it.expect("it was in the share"));
        assert!(first.revoked().now_or_never().is_none());
        drop(first);
        assert!(gate.drained().now_or_never().is_none());
        drop(second);
        assert!(gate.drained().now_or_never().is_some());
    }

    /// A call went on with the key of another controlling owner, and the hand-over of that key did not wait for it.
    #[test]
    fn key_that_a_permit_was_extended_to_is_handed_over_after_the_call() {
        let (gate, both) = (Gate::new(), Share::of("me", ["b"]));
        let [stays, moves] = [true, false].map(|stays| {
            let mut found = keys().filter(|key| both.holds(*key) == stays);
            found.next().expect("there is one")
        });
        gate.set(&Share::of("me", []));
        let permit = gate.enter(stays).expect("it is in the share");
        assert!(permit.extend(moves));
        assert!(gate.set(&both));
        assert!(!gate.is_drained());
        assert!(!permit.extend(moves) && permit.extend(stays));
        assert!(permit.revoked().now_or_never().is_none());
        gate.revoke();
        assert!(permit.revoked().now_or_never().is_some());
        drop(permit);
        assert!(gate.is_drained());
    }

    #[tokio::test]
    async fn waiting_tasks_are_woken() {
        let gate = Gate::new();
        gate.set(&Share::of("me", []));
        let permit = gate.enter(key("a")).expect("it is in the share");
        gate.set(&Share::none());
        let call = async {
            permit.revoked().await;
            drop(permit);
        };
        let hand_over = async {
            tokio::task::yield_now().await;
            gate.revoke();
            gate.drained().await;
        };
        tokio::join!(call, hand_over);
    }

    #[test]
    fn followers_of_the_share_are_notified_when_it_changes() {
        let (gate, share) = (Gate::new(), Share::of("me", []));
        let mut shares = gate.follow();
        let is_notified = |shares: &watch::Receiver<Share>| shares.has_changed().expect("it lives");
        gate.set(&share);
        assert!(is_notified(&shares));
        assert_eq!(*shares.borrow_and_update(), share);
        gate.set(&share);
        assert!(!is_notified(&shares));
    }

    #[test]
    fn a_revocation_ends_with_the_next_share() {
        let gate = Gate::new();
        gate.set(&Share::of("me", []));
        let permit = gate.enter(key("a")).expect("it is in the share");
        gate.set(&Share::none());
        gate.revoke();
        assert!(permit.revoked().now_or_never().is_some());
        gate.set(&Share::of("me", []));
        assert!(permit.revoked().now_or_never().is_none());
    }

    fn gained(gate: &Gate, follower: u64) -> Vec<ShardKey> {
        let gained = gate.gained(follower);
        keys()
            .filter(|key| gained.as_ref().is_some_and(|gained| gained.holds(*key)))
            .collect()
    }

    fn keys() -> impl Iterator<Item = ShardKey> {
        (0..60).map(|number| key(&number.to_string()))
    }

    fn held_by(share: &Share) -> Vec<ShardKey> {
        keys().filter(|key| share.holds(*key)).collect()
    }

    #[test]
    fn a_share_gains_what_it_did_not_hold() {
        let (gate, alone, both) = (Gate::new(), Share::of("me", []), Share::of("me", ["b"]));
        let follower = gate.add_follower();
        assert!(gate.gained(follower).is_none());
        gate.set(&both);
        assert_eq!(gained(&gate, follower), held_by(&both));
        assert!(gate.gained(follower).is_none(), "once");
        gate.set(&alone);
        assert_eq!(gained(&gate, follower), held_by(&Share::of("b", ["me"])));
        gate.set(&both);
        assert!(gate.gained(follower).is_none(), "it lost some");
        let later = gate.add_follower();
        assert!(gate.gained(later).is_none(), "it knows the present share");
    }

    #[test]
    fn keys_that_leave_and_return_between_two_looks_are_gained() {
        let (gate, alone) = (Gate::new(), Share::of("me", []));
        gate.set(&alone);
        let follower = gate.add_follower();
        gate.set(&Share::of("me", ["b"]));
        gate.set(&alone);
        assert_eq!(gained(&gate, follower), held_by(&Share::of("b", ["me"])));
        gate.set(&Share::none());
        gate.set(&alone);
        assert_eq!(gained(&gate, follower), keys().collect::<Vec<_>>());
    }

    #[test]
    fn end_of_one_follower_leaves_another_registered() {
        let gate = Gate::new();
        let old = gate.add_follower();
        let new = gate.add_follower();
        gate.set(&Share::of("me", []));
        gate.remove_follower(old);
        assert!(gate.gained(old).is_none());
        assert_eq!(gained(&gate, new).len(), 60);
    }
}
