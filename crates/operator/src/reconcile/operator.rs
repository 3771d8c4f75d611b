//! The state of an operator that its reconcilers share.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lariat_cache::SharedCacheFactory;
use lariat_controller::SharedControllerFactory;
use lariat_lease::Leadership;
use parking_lot::Mutex;

use super::claimed::Claimed;
use super::extensions::Extensions;
use crate::needs::Needs;

/// The state of an operator that its reconcilers share.
///
/// It has no factory. The factory owns the handlers, and they hold this, so the factory would keep itself alive.
pub(crate) struct OperatorState {
    pub(crate) name: Arc<str>,
    pub(crate) caches: SharedCacheFactory,
    /// The leadership under which objects are written; `None` without an election.
    pub(crate) leadership: Option<Leadership>,
    pub(crate) needs: Needs,
    /// The things that only one reconciler of a kind may have.
    pub(crate) claimed: Claimed,
    /// The names that the operator had before.
    former: Mutex<Vec<Arc<str>>>,
    /// Whether writes are only planned; never reset.
    only_plans: Arc<AtomicBool>,
    /// The state that features keep for the operator.
    features: Extensions,
}

impl OperatorState {
    pub(crate) fn new(name: &str, factory: &SharedControllerFactory) -> Self {
        Self {
            name: name.into(),
            caches: factory.caches().clone(),
            leadership: factory.leadership(),
            needs: Needs::default(),
            claimed: Claimed::default(),
            former: Mutex::default(),
            only_plans: Arc::default(),
            features: Extensions::default(),
        }
    }

    /// Adds a name that the operator had before.
    pub(crate) fn add_former(&self, name: &str) {
        self.former.lock().push(name.into());
    }

    /// Returns the names that the operator had before.
    pub(crate) fn former(&self) -> Vec<Arc<str>> {
        self.former.lock().clone()
    }

    /// Records that all further writes are dry runs; returns whether they were not before.
    pub(crate) fn plan_only(&self) -> bool {
        !self.only_plans.swap(true, Ordering::AcqRel)
    }

    /// Returns whether writes are dry runs.
    pub(crate) fn only_plans(&self) -> bool {
        self.only_plans.load(Ordering::Acquire)
    }

    /// Returns the switch that [`only_plans`](Self::only_plans) reads.
    pub(crate) fn plan_switch(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.only_plans)
    }

    /// Returns a feature's state of the operator, which is its default at first.
    pub(crate) fn feature<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        self.features.get()
    }

    /// Returns a feature's state of the operator, creating it on first use.
    pub(crate) fn feature_or<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.features.get_or_init(make)
    }
}
