//! The state that all clones of a factory share.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use lariat_cache::SharedCacheFactory;
use lariat_core::Gvk;
use lariat_flight::{FactoryStep, Record};
use parking_lot::{Mutex, MutexGuard};

use super::builder::Options;
use super::running::Running;
use crate::controller::{ControllerCore, Kinds, Slot};
use crate::many::{Follower, Follows};

/// The state that all clones of a factory share.
pub(crate) struct Shared {
    pub(super) caches: SharedCacheFactory,
    pub(super) options: Options,
    pub(super) state: Mutex<State>,
    /// Held while a start sets up and while a stop drains, so that the two do not overlap.
    pub(super) lifecycle: tokio::sync::Mutex<()>,
    /// Held while handlers are registered, so that a transaction registers all or none.
    pub(super) registering: Mutex<()>,
    /// The number of the next run of any kind. Counted per factory, because a simulation has several factories in one
    /// process and must repeat their numbers.
    pub(super) runs: Arc<AtomicU64>,
}

/// The number of slots from which unused ones are removed.
const SLOTS: usize = 64;

#[derive(Default)]
pub(super) struct State {
    pub(super) slots: BTreeMap<Gvk, Arc<Slot>>,
    /// The number of slots after the last removal of unused ones.
    slots_left: usize,
    /// The handlers of many kinds.
    pub(super) followers: Vec<Arc<Follower>>,
    pub(super) running: Option<Running>,
}

impl Shared {
    /// Records a start or a stop, if there is a flight recorder.
    pub(super) fn record(&self, step: FactoryStep, workers: Option<usize>) {
        if let Some(flight) = self.caches.flight() {
            let workers = workers.and_then(|workers| u32::try_from(workers).ok());
            flight.record(&Record::Factory { step, workers });
        }
    }
}

impl Kinds for Shared {
    fn caches(&self) -> &SharedCacheFactory {
        &self.caches
    }

    fn slot(self: Arc<Self>, gvk: Gvk) -> Arc<Slot> {
        let mut state = self.state.lock();
        if let Some(slot) = state.slots.get(&gvk) {
            return Arc::clone(slot);
        }
        let unused = state.make_room_for_slot();
        let options = self.options.of(&gvk);
        let factory: Weak<dyn Kinds> = Arc::<Self>::downgrade(&self);
        let runs = Arc::clone(&self.runs);
        let slot = Slot::new(gvk.clone(), self.caches.clone(), options, factory, runs);
        let slot = Arc::new(slot);
        state.slots.insert(gvk, Arc::clone(&slot));
        drop(state);
        drop(unused);
        slot
    }

    fn registering(&self) -> MutexGuard<'_, ()> {
        self.registering.lock()
    }

    fn start_late(&self, slot: &Arc<Slot>, core: &Arc<ControllerCore>) {
        if let Some(running) = &mut self.state.lock().running {
            running.spawn(slot, core);
        }
    }

    fn forget(&self, core: &Arc<ControllerCore>) {
        if let Some(running) = &mut self.state.lock().running {
            running.forget(core);
        }
    }
}

impl Follows for Shared {
    fn forget_followers(&self) {
        let mut state = self.state.lock();
        let ended: Vec<_> = state
            .followers
            .extract_if(.., |follower| follower.has_ended())
            .collect();
        drop(state);
        // Dropped after unlocking: with them go handlers, whose drop is user code.
        drop(ended);
    }

    fn follow(&self, follower: &Arc<Follower>) {
        let mut state = self.state.lock();
        state.followers.push(Arc::clone(follower));
        if let Some(running) = &state.running {
            running.follow(follower);
        }
    }
}

impl State {
    /// Removes the slots of unused kinds when there are many.
    ///
    /// A later request for the kind creates another slot. Otherwise a program that is asked for arbitrary kinds would
    /// keep a slot of each.
    fn make_room_for_slot(&mut self) -> Vec<Arc<Slot>> {
        // Only after each doubling, so that the cost per new kind stays constant.
        if self.slots.len() < self.most_slots() {
            return Vec::new();
        }
        let is_unused =
            |_: &Gvk, slot: &mut Arc<Slot>| Arc::strong_count(slot) == 1 && slot.is_unused();
        let unused = self.slots.extract_if(.., is_unused);
        let unused: Vec<(Gvk, Arc<Slot>)> = unused.collect();
        self.slots_left = self.slots.len();
        unused.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Returns the bound on the number of slots.
    pub(super) fn most_slots(&self) -> usize {
        SLOTS.max(2 * self.slots_left)
    }

    /// Returns whether any handler is registered.
    pub(super) fn has_handlers(&self) -> bool {
        let cores = self.slots.values().filter_map(|slot| slot.in_use());
        !self.followers.is_empty() || cores.into_iter().any(|core| !core.is_unused())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.state.get_mut().running.is_some() && !std::thread::panicking() {
            tracing::warn!(
                "the last clone of a running factory was dropped, so its handlers are not called any more; keep it, or stop it"
            );
        }
        // Handles of controllers keep the caches alive, so these must be stopped.
        self.caches.abort();
        // Handlers may hold handles of controllers, which hold handlers: break the cycle.
        let slots = self.state.get_mut().slots.values();
        slots.for_each(|slot| slot.close());
    }
}
