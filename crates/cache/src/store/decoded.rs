//! The values decoded from an object, and the counters of decodes.

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use lariat_core::{Gvk, ObjectKey};
use serde::de::DeserializeOwned;

use super::error::DecodeError;
use super::object::CachedObject;

/// How many objects may have dead links, per thread that decodes.
const LENGTH: usize = 64;

thread_local! {
    static RECENT: RefCell<VecDeque<Weak<CachedObject>>> = const { RefCell::new(VecDeque::new()) };
    static DECODES: Cell<u64> = const { Cell::new(0) };
}

/// Links to the values decoded from an object, at most one of each type.
///
/// Most objects have none, because they are never read. Boxed, because there are many objects.
#[derive(Default)]
#[allow(
    clippy::box_collection,
    reason = "a Vec of its own is three words in every object"
)]
pub(super) struct Decoded(Option<Box<Vec<Link>>>);

/// A value decoded as some type.
struct Link {
    as_type: TypeId,
    value: Weak<dyn Any + Send + Sync>,
    /// Keeps the value alive, in a kind that is stored decoded.
    kept: Option<Arc<dyn Any + Send + Sync>>,
}

impl Decoded {
    /// Returns the decoded value of a type, if a reader still uses it.
    pub(super) fn get<K: Send + Sync + 'static>(&self) -> Option<Arc<K>> {
        let wanted = TypeId::of::<K>();
        let of_type = self.links().filter(|each| each.as_type == wanted);
        let mut alive = of_type.filter_map(|each| each.value.upgrade());
        alive.next()?.downcast::<K>().ok()
    }

    /// Links to a value, and keeps it alive if `retains`.
    pub(super) fn remember<K: Send + Sync + 'static>(&mut self, value: &Arc<K>, retains: bool) {
        let shared: Arc<dyn Any + Send + Sync> = Arc::<K>::clone(value);
        let as_type = TypeId::of::<K>();
        let all = self.0.get_or_insert_default();
        all.retain(|each| each.as_type != as_type && each.value.strong_count() > 0);
        all.push(Link {
            as_type,
            value: Arc::downgrade(&shared),
            kept: retains.then_some(shared),
        });
    }

    /// Counts the values that are kept alive.
    pub(super) fn kept(&self) -> usize {
        self.links().filter(|each| each.kept.is_some()).count()
    }

    /// Stops keeping values alive; readers may still use them.
    pub(super) fn release(&mut self) {
        let links = self.0.iter_mut().flat_map(|all| all.iter_mut());
        links.for_each(|each| each.kept = None);
    }

    /// Removes links to values that are no longer in use.
    pub(super) fn forget_dead(&mut self) {
        if let Some(all) = &mut self.0 {
            all.retain(|each| each.value.strong_count() > 0);
            if all.is_empty() {
                self.0 = None;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn links(&self) -> impl Iterator<Item = &Link> {
        self.0.iter().flat_map(|all| all.iter())
    }
}

/// Decodes an object; the error names the path of the wrong field.
pub(super) fn decode_anew<K: DeserializeOwned>(
    json: &[u8],
    gvk: &Gvk,
    key: &ObjectKey,
) -> Result<K, DecodeError> {
    // Tracking the path costs time, so it is done only after decoding has failed.
    serde_json::from_slice(json).map_err(|_| {
        let mut json = serde_json::Deserializer::from_slice(json);
        let located: Result<K, _> = serde_path_to_error::deserialize(&mut json);
        DecodeError::new(gvk, key, located.err())
    })
}

/// Counts a decode, and later removes the dead links of the object.
///
/// A weak link keeps the allocation of its value, though not what the value owned. Without the removal, a kind that was
/// read once would keep one allocation per object.
pub(super) fn note_decoded(object: &Arc<CachedObject>) {
    DECODES.set(DECODES.get().wrapping_add(1));
    let before_long = RECENT.with_borrow_mut(|recent| {
        recent.push_back(Arc::downgrade(object));
        (recent.len() > LENGTH)
            .then(|| recent.pop_front())
            .flatten()
    });
    if let Some(object) = before_long.and_then(|object| object.upgrade()) {
        object.forget_dead();
    }
}

/// Counts the decodes of the objects of a store; a clone shares the counters.
///
/// Readers count, because an object does not know its store: that would take a pointer in every object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Decodes(Arc<ReadCounts>);

#[derive(Debug, Default)]
struct ReadCounts {
    decodes: AtomicU64,
    /// Reads without a decode; each thread counts in one slot.
    hits: [Slot; SLOTS],
}

/// A counter in a cache line of its own, so that cores do not contend.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot(AtomicU64);

/// How many threads count hits without sharing a slot.
const SLOTS: usize = 8;

thread_local! {
    static SLOT: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS
    };
}

impl Decodes {
    /// Runs a function that reads a value, and counts its decodes or one hit.
    pub(crate) fn of<T>(&self, read: impl FnOnce() -> T) -> T {
        // The counter of this thread: decodes of other threads must not count here.
        let before = DECODES.get();
        let result = read();
        let count = DECODES.get().wrapping_sub(before);
        let slot = if count > 0 {
            &self.0.decodes
        } else {
            &self.0.hits[SLOT.with(|slot| *slot)].0
        };
        slot.fetch_add(count.max(1), Ordering::Relaxed);
        result
    }

    pub(super) fn count(&self) -> u64 {
        self.0.decodes.load(Ordering::Relaxed)
    }

    pub(super) fn hits(&self) -> u64 {
        let slots = self.0.hits.iter();
        slots.map(|slot| slot.0.load(Ordering::Relaxed)).sum()
    }
}
