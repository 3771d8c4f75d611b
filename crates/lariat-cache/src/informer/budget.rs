//! Keeping to an amount of memory.

use std::fmt;
use std::sync::{Arc, Weak};

use lariat_core::Gvk;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::store::{Storage, Store};

/// What a kind may hold, on its own and as one of all kinds of a factory.
pub(crate) struct Budget {
    /// How many bytes the kind may hold; none for any number.
    kind: Option<usize>,
    all: SharedBudget,
    /// Tells the informer in which form the kind has to be kept.
    storage: watch::Sender<Storage>,
}

/// What all kinds of a factory may hold together; a clone is the same budget.
#[derive(Clone, Default)]
pub(crate) struct SharedBudget {
    limit: Option<usize>,
    kinds: Arc<Mutex<Vec<Holder>>>,
}

/// A kind that holds memory.
#[derive(Clone)]
struct Holder {
    gvk: Gvk,
    store: Weak<Store>,
    storage: watch::Sender<Storage>,
}

/// How much larger decoded values are than the JSON they come from: five to seven times were measured.
const DECODED: usize = 6;

impl Budget {
    pub(crate) fn new(
        kind: Option<usize>,
        all: SharedBudget,
        storage: watch::Sender<Storage>,
    ) -> Self {
        Self { kind, all, storage }
    }

    /// Makes the store count among those of the factory.
    pub(crate) fn enter(&self, gvk: &Gvk, store: &Arc<Store>) {
        if self.all.limit.is_none() {
            return;
        }
        let mut kinds = self.all.kinds.lock();
        kinds.retain(|holder| holder.store.strong_count() > 0);
        kinds.push(Holder {
            gvk: gvk.clone(),
            store: Arc::downgrade(store),
            storage: self.storage.clone(),
        });
    }

    /// Steps a kind down to a smaller form if too much is held: this one, or of all the largest.
    pub(crate) fn enforce(&self, gvk: &Gvk, store: &Store) {
        if self.kind.is_some_and(|limit| held(store) > limit) {
            step_down(gvk, store, &self.storage);
        }
        let Some(limit) = self.all.limit else {
            return;
        };
        let holders: Vec<(Holder, Arc<Store>)> = {
            let kinds = self.all.kinds.lock();
            let alive = kinds
                .iter()
                .filter_map(|each| Some((each.clone(), each.store.upgrade()?)));
            alive.collect()
        };
        if holders.iter().map(|(_, store)| held(store)).sum::<usize>() <= limit {
            return;
        }
        // One that steps down to metadata holds its content until that has been read.
        if holders.iter().any(|(_, store)| store.is_shrinking()) {
            return;
        }
        let can_shrink = |(_, store): &&(Holder, Arc<Store>)| store.storage() != Storage::OnDemand;
        let largest = holders
            .iter()
            .filter(can_shrink)
            .max_by_key(|(_, store)| held(store));
        if let Some((holder, store)) = largest {
            step_down(&holder.gvk, store, &holder.storage);
        }
    }
}

impl SharedBudget {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        Self {
            limit,
            kinds: Arc::default(),
        }
    }
}

fn held(store: &Store) -> usize {
    let bytes = store.bytes();
    match store.storage() {
        Storage::Decoded => bytes * (1 + DECODED),
        _ => bytes,
    }
}

fn step_down(gvk: &Gvk, store: &Store, storage: &watch::Sender<Storage>) {
    let now = store.storage();
    let next = match now {
        Storage::Decoded => Storage::Plain,
        Storage::Plain => Storage::Compressed,
        // Compressed by now, if that helps.
        Storage::Auto if !store.is_packed() => Storage::Compressed,
        Storage::Auto | Storage::Compressed => Storage::OnDemand,
        Storage::OnDemand => return,
    };
    let bytes = store.bytes();
    tracing::warn!(kind = %gvk, bytes, from = ?now, to = ?next, "over its memory budget, kept smaller");
    // The informer takes the content away by listing again.
    store.set_storage(next);
    storage.send_replace(next);
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("kind", &self.kind)
            .field("all", &self.all.limit)
            .finish_non_exhaustive()
    }
}
