//! The state that all clones of a factory share.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use dashmap::DashMap;
use lariat_cache::SharedCacheFactory;
use lariat_core::Gvk;
use lariat_flight::{FactoryStep, Record};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::options::Options;
use super::phase::FactoryPhase;
use super::run::FactoryRun;
use crate::controller::{ControllerCore, Kinds, Slot};
use crate::many::{Follower, Follows};

/// The state that all clones of a factory share.
pub(crate) struct FactoryCore {
    pub(super) caches: SharedCacheFactory,
    pub(super) options: Options,
    /// By kind. Slots are inserted and removed while `state` is locked, which is locked first.
    slots: DashMap<Gvk, Arc<Slot>>,
    pub(super) state: Mutex<FactoryState>,
    /// Held while a start sets up and while a stop drains, so that the two do not overlap.
    pub(super) lifecycle: tokio::sync::Mutex<()>,
    /// Held while handlers are registered, so that a transaction registers all or none.
    pub(super) registering: Mutex<()>,
    /// The number of the next run of any kind. Counted per factory, because a simulation has several factories in one
    /// process and must repeat their numbers.
    pub(super) runs: Arc<AtomicU64>,
    pub(super) phase: watch::Sender<FactoryPhase>,
}

/// The number of slots from which unused ones are removed.
const SLOTS: usize = 64;

/// The number of locks of the slots. Iterating over all slots takes each of them.
const SHARDS: usize = 8;

/// The part of a factory's state that changes together, under one lock.
#[derive(Default)]
pub(super) struct FactoryState {
    /// The number of slots after the last removal of unused ones.
    slots_left: usize,
    /// The handlers of many kinds.
    pub(super) followers: Vec<Arc<Follower>>,
    /// The present run; none while the factory is stopped.
    pub(super) run: Option<FactoryRun>,
}

impl FactoryCore {
    pub(super) fn new(caches: SharedCacheFactory, options: Options) -> Self {
        Self {
            caches,
            options,
            slots: DashMap::with_shard_amount(SHARDS),
            state: Mutex::default(),
            lifecycle: tokio::sync::Mutex::default(),
            registering: Mutex::default(),
            runs: Arc::new(AtomicU64::new(1)),
            phase: watch::Sender::new(FactoryPhase::Idle),
        }
    }

    /// Returns the slots in the order of their kinds, which is the same in each run.
    pub(super) fn slots(&self) -> Vec<Arc<Slot>> {
        let mut slots: Vec<Arc<Slot>> = self.slots.iter().map(|it| Arc::clone(&it)).collect();
        slots.sort_by(|a, b| a.gvk().cmp(b.gvk()));
        slots
    }

    /// Removes unused slots, and returns them; the next request for such a kind creates another.
    ///
    /// A program that asks for arbitrary kinds must not keep a slot of each.
    fn remove_unused_slots(&self, state: &mut FactoryState) -> Vec<Arc<Slot>> {
        // After each doubling, so that not every new kind iterates over all slots.
        if self.slots.len() < state.most_slots() {
            return Vec::new();
        }
        // Slots are cloned only under the lock that this closure is called under.
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

    /// Records that the factory starts or stops, if there is a recorder.
    pub(super) fn record(&self, step: FactoryStep, workers: Option<usize>) {
        if let Some(flight) = self.caches.flight() {
            let workers = workers.and_then(|workers| u32::try_from(workers).ok());
            flight.record(&Record::Factory { step, workers });
        }
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
            let slot = Slot::new(gvk.clone(), self.caches.clone(), options, factory, runs);
            Arc::new(slot)
        };
        // Another task may have been faster.
        let slot = Arc::clone(&*self.slots.entry(gvk.clone()).or_insert_with(make));
        drop(state);
        drop(unused);
        slot
    }

    fn registering(&self) -> MutexGuard<'_, ()> {
        self.registering.lock()
    }

    fn start_late(&self, slot: &Arc<Slot>, core: &Arc<ControllerCore>) {
        if let Some(run) = &mut self.state.lock().run {
            run.spawn(slot, core);
        }
    }

    fn forget(&self, core: &Arc<ControllerCore>) {
        if let Some(run) = &mut self.state.lock().run {
            run.forget(core);
        }
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
        // Dropped after unlocking, because dropping their handlers runs user code.
        drop(ended);
    }

    fn follow(&self, follower: &Arc<Follower>) {
        let mut state = self.state.lock();
        state.followers.push(Arc::clone(follower));
        if let Some(run) = &state.run {
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
        if self.state.get_mut().run.is_some() && !std::thread::panicking() {
            tracing::warn!(
                "the last clone of a running factory was dropped, so its handlers are not called any more; keep it, or stop it"
            );
        }
        // Handles of controllers keep the caches alive, so these must be stopped.
        self.caches.abort();
        // Handlers may hold handles of controllers, which hold their handlers.
        self.slots().iter().for_each(|slot| slot.close());
    }
}
