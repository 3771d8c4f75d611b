//! Memory budgets: storing kinds in smaller forms when they need too much memory.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use lariat_core::Gvk;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::store::{Storage, Store};

/// The memory budget of one kind, and its part in the budget of all kinds.
pub(crate) struct Budget {
    /// The budget of the kind in bytes; `None` without a limit.
    limit: Option<usize>,
    all: SharedBudget,
    gvk: Gvk,
    store: Arc<Store>,
    /// Notifies the informer of the form in which the kind must be stored.
    storage: watch::Sender<Storage>,
    /// The form that the options of the kind choose.
    chosen: Storage,
    /// The memory use when it was last counted.
    counted: AtomicUsize,
    /// Locked while the form changes.
    stepping: Mutex<()>,
    /// How many holds of the content there are; changed while `stepping` is locked.
    holds: AtomicUsize,
    /// Whether it was logged that a hold keeps the kind beyond its budget.
    is_warned: AtomicBool,
}

/// The memory budget of all kinds of a factory; a clone is the same budget.
#[derive(Clone, Default)]
pub(crate) struct SharedBudget {
    limit: Option<usize>,
    memory: Arc<MemoryUse>,
}

/// The memory use of all kinds.
#[derive(Default)]
struct MemoryUse {
    /// The sum of the last counts of all kinds.
    ///
    /// Negative for a moment if two tasks count one kind concurrently.
    total: AtomicIsize,
    /// Whether every kind is stored in its smallest form, so that nothing can be done.
    is_least: AtomicBool,
    kinds: Mutex<Vec<Weak<Budget>>>,
    /// Locked while kinds are stored in smaller forms.
    shrinking: Mutex<()>,
}

/// Keeps the content of a kind cached; dropping it ends that.
///
/// As long as it exists, the kind is stored [compressed](Storage::Compressed) instead of [on
/// demand](Storage::OnDemand), also beyond its memory budget. See
/// [`Informer::hold_content`](crate::Informer::hold_content).
#[must_use = "dropping a hold ends it"]
pub struct ContentHold(Arc<Budget>);

/// The size of decoded values relative to their JSON: five to seven times were measured.
const DECODED: usize = 6;

impl Budget {
    pub(crate) fn new(
        limit: Option<usize>,
        all: SharedBudget,
        gvk: Gvk,
        store: Arc<Store>,
        storage: watch::Sender<Storage>,
    ) -> Arc<Self> {
        let chosen = *storage.borrow();
        let budget = Arc::new(Self {
            limit,
            all,
            gvk,
            store,
            storage,
            chosen,
            counted: AtomicUsize::new(0),
            stepping: Mutex::new(()),
            holds: AtomicUsize::new(0),
            is_warned: AtomicBool::new(false),
        });
        let memory = &budget.all.memory;
        if budget.all.limit.is_some() {
            let mut kinds = memory.kinds.lock();
            kinds.push(Arc::downgrade(&budget));
            // Before the lock is released, under which `largest` may find that no kind can be smaller.
            memory.is_least.store(false, Ordering::Relaxed);
        }
        budget
    }

    /// Stores this kind, or the largest ones, in smaller forms if over budget.
    ///
    /// Within the budget this reads two counters, however many kinds there are.
    pub(crate) fn enforce(&self) {
        if self.limit.is_none() && self.all.limit.is_none() {
            return;
        }
        let is_over = |used| self.limit.is_some_and(|limit| used > limit);
        while is_over(self.count()) && self.step_down() {}
        if is_over(self.counted.load(Ordering::Relaxed)) {
            self.warn_of_holds();
        }
        if self.all.is_over() {
            self.all.shrink();
        }
    }

    /// Keeps the content cached as long as the returned hold exists.
    ///
    /// `upgrade` is called if the content has to be read for that, before the informer learns of it.
    pub(crate) fn hold_content(self: &Arc<Self>, upgrade: impl FnOnce()) -> ContentHold {
        let _alone = self.stepping.lock();
        self.holds.fetch_add(1, Ordering::Relaxed);
        if self.store.storage() == Storage::OnDemand {
            let kind = &self.gvk;
            tracing::warn!(%kind, "a relation or an index reads content, so the kind is stored compressed instead of on demand; make it read Metadata if that suffices");
            self.store_as(Storage::Compressed, upgrade);
        }
        ContentHold(Arc::clone(self))
    }

    /// Returns whether there is a hold of the content.
    pub(crate) fn holds_content(&self) -> bool {
        self.holds.load(Ordering::Relaxed) > 0
    }

    /// Estimates the memory use, including the decoded values that are kept alive.
    fn used(&self) -> usize {
        let bytes = self.store.bytes();
        match self.store.storage() {
            Storage::Decoded => bytes * (1 + DECODED),
            _ => bytes,
        }
    }

    /// Counts the kind's memory use in the total, and returns it.
    fn count(&self) -> usize {
        let used = self.used();
        let before = self.counted.swap(used, Ordering::Relaxed);
        let total = &self.all.memory.total;
        total.fetch_add(used.wrapping_sub(before).cast_signed(), Ordering::Relaxed);
        used
    }

    /// Changes the kind to the next smaller form.
    ///
    /// `false` if there is none, or another task is changing it.
    fn step_down(&self) -> bool {
        let Some(_alone) = self.stepping.try_lock() else {
            return false;
        };
        let now = self.store.storage();
        let Some(next) = self.smaller() else {
            return false;
        };
        let (kind, bytes) = (&self.gvk, self.store.bytes());
        tracing::warn!(%kind, bytes, from = ?now, to = ?next, "the kind exceeds its memory budget and is stored in a smaller form");
        self.store_as(next, || {});
        true
    }

    /// Returns the next smaller form, if there is one.
    fn smaller(&self) -> Option<Storage> {
        match self.store.storage() {
            Storage::Decoded => Some(Storage::Plain),
            Storage::Plain => Some(Storage::Compressed),
            // Compression frees memory only if the objects are not compressed already.
            Storage::Auto if !self.store.is_packed() => Some(Storage::Compressed),
            Storage::Auto | Storage::Compressed => {
                (!self.holds_content()).then_some(Storage::OnDemand)
            }
            Storage::OnDemand => None,
        }
    }

    /// Changes the form; `upgrade` is called before the informer learns of it.
    fn store_as(&self, form: Storage, upgrade: impl FnOnce()) {
        // Frees the memory at once, whether or not the informer reads the kind again.
        self.store.set_storage(form);
        self.storage.send_modify(|storage| {
            *storage = form;
            upgrade();
        });
    }

    /// Logs once that a hold keeps the kind beyond its budget.
    fn warn_of_holds(&self) {
        if self.holds_content()
            && self.smaller().is_none()
            && !self.is_warned.swap(true, Ordering::Relaxed)
        {
            let (kind, bytes) = (&self.gvk, self.store.bytes());
            tracing::warn!(%kind, bytes, "the memory budget is exceeded, and the content stays cached because a relation or an index reads it; make it read Metadata, or raise the budget");
        }
    }
}

impl SharedBudget {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        Self {
            limit,
            memory: Arc::default(),
        }
    }

    /// Returns how many kinds are counted.
    pub(crate) fn kinds(&self) -> usize {
        self.memory.kinds.lock().len()
    }

    fn is_over(&self) -> bool {
        let used = usize::try_from(self.memory.total.load(Ordering::Relaxed)).unwrap_or(0);
        self.limit.is_some_and(|limit| used > limit)
            && !self.memory.is_least.load(Ordering::Relaxed)
    }

    /// Stores the largest kinds in smaller forms until they fit into the budget.
    fn shrink(&self) {
        // The task that is shrinking already sees what this one has counted.
        let Some(_alone) = self.memory.shrinking.try_lock() else {
            return;
        };
        while self.is_over() {
            let Some(largest) = self.largest() else {
                return;
            };
            let is_smaller = largest.step_down();
            largest.count();
            if !is_smaller {
                return;
            }
        }
    }

    /// Returns the largest kind that can be stored smaller; records if there is none.
    fn largest(&self) -> Option<Arc<Budget>> {
        let kinds = self.memory.kinds.lock();
        let alive: Vec<_> = kinds.iter().filter_map(Weak::upgrade).collect();
        let shrinkable = alive.iter().filter(|kind| kind.smaller().is_some());
        let largest = shrinkable.max_by_key(|kind| kind.used()).cloned();
        if largest.is_none() {
            self.memory.is_least.store(true, Ordering::Relaxed);
            alive.iter().for_each(|kind| kind.warn_of_holds());
        }
        // Unlocked before `alive` is dropped: a budget that ends meanwhile takes this lock.
        drop(kinds);
        largest
    }
}

impl Drop for ContentHold {
    fn drop(&mut self) {
        let budget = &self.0;
        let alone = budget.stepping.lock();
        if budget.holds.fetch_sub(1, Ordering::Relaxed) == 1 {
            budget.is_warned.store(false, Ordering::Relaxed);
            // A budget that is exceeded is enforced with the next change.
            if budget.chosen == Storage::OnDemand {
                budget.store_as(Storage::OnDemand, || {});
            }
        }
        drop(alone);
        // The kind can be stored in a smaller form again.
        budget.all.memory.is_least.store(false, Ordering::Relaxed);
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        let memory = &self.all.memory;
        let counted = self.counted.load(Ordering::Relaxed);
        memory
            .total
            .fetch_sub(counted.cast_signed(), Ordering::Relaxed);
        memory.kinds.lock().retain(|kind| kind.strong_count() > 0);
    }
}

impl fmt::Debug for ContentHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContentHold")
            .field("gvk", &self.0.gvk)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("kind", &self.limit)
            .field("all", &self.all.limit)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lariat_core::RawObject;

    use super::*;
    use crate::selection::Selection;
    use crate::store::{Content, Delta};

    fn kind(all: &SharedBudget, objects: usize) -> Arc<Budget> {
        let store = Arc::new(Store::default());
        store.set_storage(Storage::Plain);
        let gvk = Gvk::new("", "v1", "ConfigMap");
        let object = |number: usize| {
            let filling = "filling ".repeat(40);
            let json = format!(
                r#"{{"metadata":{{"name":"o{number}","resourceVersion":"1"}},"data":{{"a":"{filling}"}}}}"#
            );
            Delta::Present(RawObject::parse(json.as_bytes(), &gvk).unwrap())
        };
        store.apply((0..objects).map(object).collect(), Content::Whole);
        let storage = watch::Sender::new(Storage::Plain);
        Budget::new(None, all.clone(), gvk, store, storage)
    }

    fn total(all: &SharedBudget) -> usize {
        usize::try_from(all.memory.total.load(Ordering::Relaxed)).unwrap()
    }

    #[test]
    fn the_total_is_the_sum_of_the_kinds_that_are_left() {
        let all = SharedBudget::new(Some(usize::MAX));
        let kinds: Vec<_> = (1..4).map(|objects| kind(&all, objects)).collect();
        for _ in 0..2 {
            kinds.iter().for_each(|kind| kind.enforce());
            let used = kinds.iter().map(|kind| kind.store.bytes());
            assert_eq!(total(&all), used.sum::<usize>());
        }
        let none = Selection::all().with_labels("no=such".parse().unwrap());
        kinds[0].store.restrict(&none);
        kinds[0].enforce();
        let used = kinds.iter().map(|kind| kind.store.bytes());
        assert_eq!(total(&all), used.sum::<usize>());
        assert_eq!(all.kinds(), 3);
        drop(kinds);
        assert_eq!(total(&all), 0);
        assert_eq!(all.kinds(), 0, "nothing is left of kinds that ended");
    }

    #[test]
    fn kinds_become_smaller_until_there_is_room_and_no_further() {
        let mut all = SharedBudget::new(Some(usize::MAX));
        let kinds: Vec<_> = (1..4).map(|number| kind(&all, number * 100)).collect();
        kinds.iter().for_each(|kind| kind.enforce());
        let before = total(&all);
        all.limit = Some(before / 2);
        all.shrink();
        assert!(total(&all) <= before / 2, "{} of {before}", total(&all));
        assert_eq!(kinds[0].store.storage(), Storage::Plain);
        all.limit = Some(0);
        all.shrink();
        for kind in &kinds {
            assert_eq!(kind.store.storage(), Storage::OnDemand);
            assert_eq!(*kind.storage.borrow(), Storage::OnDemand);
        }
        assert!(!all.is_over(), "nothing is left to be done");
    }

    #[test]
    fn two_concurrent_steps_down_end_with_one_form() {
        let all = SharedBudget::new(None);
        for _ in 0..20 {
            let kind = kind(&all, 100);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| kind.step_down());
                }
            });
            assert_eq!(*kind.storage.borrow(), kind.store.storage());
        }
    }
}
