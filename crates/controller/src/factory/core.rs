//! The state that all clones of a factory share.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use dashmap::DashMap;
use lariat_cache::{SharedCacheFactory, WriteGate};
use lariat_core::Gvk;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::life::Life;
use super::options::Options;
use super::phase::FactoryPhase;
use super::watchdog::Watched;
use crate::clients::FactoryGate;
use crate::controller::{Kinds, Slot};
use crate::many::{Follower, Follows};

/// The state that all clones of a factory share.
pub(crate) struct FactoryCore {
    pub(super) caches: SharedCacheFactory,
    pub(super) gate: Arc<FactoryGate>,
    pub(super) options: Options,
    /// The slots by kind. They are inserted and removed only while `state` is locked; `state` is locked first.
    slots: DashMap<Gvk, Arc<Slot>>,
    pub(super) state: Mutex<FactoryState>,
    /// The task that stops the last run.
    pub(super) stops: TaskTracker,
    /// Locked by every registration, so that a transaction is atomic.
    pub(super) registering: Mutex<()>,
    /// The number of the next run of a key, of any kind. It is counted per factory and not per process: a simulation
    /// has several factories in one process, and each must number its runs the same way every time.
    pub(super) runs: Arc<AtomicU64>,
    pub(super) phase: watch::Sender<FactoryPhase>,
    /// The calls that the watchdog of a run looks at.
    pub(super) watched: Arc<Watched>,
}

/// The number of slots below which unused ones are kept.
const SLOTS: usize = 64;

/// The number of shards, and locks, of the slot map. Iterating over all slots takes each lock.
const SHARDS: usize = 8;

/// The part of a factory's state that changes together, under one lock.
#[derive(Default)]
pub(super) struct FactoryState {
    /// The number of slots after the last removal of unused ones.
    slots_left: usize,
    /// The handlers of many kinds.
    pub(super) followers: Vec<Arc<Follower>>,
    /// Whether the factory runs, with the present run.
    pub(super) life: Life,
}

impl FactoryCore {
    pub(super) fn new(caches: SharedCacheFactory, options: Options) -> Self {
        let gate = Arc::new(FactoryGate::new(options.leadership()));
        let set: Arc<dyn WriteGate> = Arc::<FactoryGate>::clone(&gate);
        let is_first = caches.clients().set_gate(set);
        // If another gate were set, the gates of handlers would never be asked.
        debug_assert!(is_first, "caches that were just built have no gate");
        Self {
            caches,
            gate,
            options,
            slots: DashMap::with_shard_amount(SHARDS),
            state: Mutex::default(),
            stops: TaskTracker::new(),
            registering: Mutex::default(),
            runs: Arc::new(AtomicU64::new(1)),
            phase: watch::Sender::new(FactoryPhase::Idle),
            watched: Arc::default(),
        }
    }

    /// Returns the slots in the order of their kinds, which is the same in each run.
    pub(super) fn slots(&self) -> Vec<Arc<Slot>> {
        let mut slots: Vec<Arc<Slot>> = self.slots.iter().map(|it| Arc::clone(&it)).collect();
        slots.sort_by(|a, b| a.gvk().cmp(b.gvk()));
        slots
    }

    /// Removes unused slots, and returns them.
    ///
    /// The next request for such a kind creates another slot. Without the removal, a program that requests arbitrary
    /// kinds, such as a proxy, would keep a slot for each of them.
    fn remove_unused_slots(&self, state: &mut FactoryState) -> Vec<Arc<Slot>> {
        // After each doubling, so that not every new kind iterates over all slots.
        if self.slots.len() < state.most_slots() {
            return Vec::new();
        }
        // A slot is cloned out of the map only under its shard's lock, which `remove_if` holds here. So a count of one
        // means that no call holds the slot, and none can get it before it is removed.
        let is_unused =
            |_: &Gvk, slot: &Arc<Slot>| Arc::strong_count(slot) == 1 && slot.is_unused();
        let gvks: Vec<Gvk> = self.slots.iter().map(|it| it.key().clone()).collect();
        let unused = gvks
            .iter()
            .filter_map(|gvk| self.slots.remove_if(gvk, is_unused))
            .map(|(_, slot)| slot)
            .collect();
        state.slots_left = self.slots.len();
        unused
    }

    /// Returns whether there is a handler of any kind.
    pub(super) fn has_handlers(&self, state: &FactoryState) -> bool {
        let cores = self.slots().into_iter().filter_map(|slot| slot.in_use());
        !state.followers.is_empty() || cores.into_iter().any(|core| !core.is_unused())
    }
}

impl Kinds for FactoryCore {
    fn caches(&self) -> &SharedCacheFactory {
        &self.caches
    }

    fn slot(self: Arc<Self>, gvk: Gvk) -> Arc<Slot> {
        if let Some(slot) = self.slots.get(&gvk) {
            return Arc::clone(&slot);
        }
        let mut state = self.state.lock();
        let unused = self.remove_unused_slots(&mut state);
        let make = || {
            let options = self.options.of(&gvk);
            let factory: Weak<dyn Kinds> = Arc::<Self>::downgrade(&self);
            let runs = Arc::clone(&self.runs);
            let (caches, gate) = (self.caches.clone(), Arc::clone(&self.gate));
            Arc::new(Slot::new(gvk.clone(), caches, gate, options, factory, runs))
        };
        // Another task may have inserted the slot after the look-up above.
        let slot = Arc::clone(&*self.slots.entry(gvk.clone()).or_insert_with(make));
        drop(state);
        // Dropped after unlocking: a slot holds options, whose closures are the user's.
        drop(unused);
        slot
    }

    fn registering(&self) -> MutexGuard<'_, ()> {
        self.registering.lock()
    }

    fn start_late(&self, slot: &Arc<Slot>) {
        if let Some(run) = self.state.lock().life.run_mut() {
            run.own(slot);
        }
    }

    fn give_up(&self, slot: &Arc<Slot>) -> bool {
        let mut state = self.state.lock();
        state.life.run_mut().is_some_and(|run| run.give_up(slot))
    }
}

impl Follows for FactoryCore {
    fn forget_followers(&self) {
        let mut state = self.state.lock();
        let ended: Vec<_> = state
            .followers
            .extract_if(.., |follower| follower.has_ended())
            .collect();
        drop(state);
        // Dropped after unlocking, because dropping a handler runs user code.
        drop(ended);
    }

    fn follow(&self, follower: &Arc<Follower>) {
        let mut state = self.state.lock();
        state.followers.push(Arc::clone(follower));
        // Under the same lock: a start that comes later finds the follower in the list, one that came earlier runs.
        if let Some(run) = state.life.run() {
            run.follow(follower);
        }
    }
}

impl FactoryState {
    /// Returns the bound on the number of slots.
    pub(super) fn most_slots(&self) -> usize {
        SLOTS.max(2 * self.slots_left)
    }
}

impl Drop for FactoryCore {
    fn drop(&mut self) {
        if self.state.get_mut().life.run().is_some() && !std::thread::panicking() {
            tracing::warn!(
                "the last handle of a running factory was dropped, which aborts its controllers; keep a handle, or stop it"
            );
        }
        // Handles of controllers keep the caches alive, so their watches would go on without this.
        self.caches.abort();
        // Breaks reference cycles: a handler may capture the handle of a controller, which owns the handler.
        self.slots().iter().for_each(|slot| slot.close());
    }
}
