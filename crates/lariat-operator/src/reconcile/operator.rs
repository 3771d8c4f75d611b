//! What reconcilers have of their operator.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lariat_cache::SharedCacheFactory;
use lariat_controller::{Leadership, SharedControllerFactory};

use super::claimed::Claimed;
use super::extensions::Extensions;
use crate::needs::Needs;

/// What reconcilers have of their operator. It has no factory, which would keep itself through its handlers.
pub(crate) struct OperatorState {
    pub(crate) name: Arc<str>,
    pub(crate) caches: SharedCacheFactory,
    /// The lease under which objects are written.
    pub(crate) leadership: Option<Leadership>,
    pub(crate) needs: Needs,
    /// What only one reconciler of a kind may have.
    pub(crate) claimed: Claimed,
    /// Set once nothing is written any more, only planned.
    only_plans: AtomicBool,
    /// What features keep for the operator.
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
            only_plans: AtomicBool::new(false),
            features: Extensions::default(),
        }
    }

    /// Makes every write of reconcilers a dry run, from now on.
    pub(crate) fn plan_only(&self) {
        self.only_plans.store(true, Ordering::Release);
    }

    /// Returns whether writes of reconcilers are dry runs.
    pub(crate) fn only_plans(&self) -> bool {
        self.only_plans.load(Ordering::Acquire)
    }

    /// Returns what a feature keeps for the operator: a default value at first.
    pub(crate) fn feature<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        self.features.get()
    }

    /// Returns what a feature keeps for the operator, which is made if this is the first time.
    pub(crate) fn feature_or<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.features.get_or_init(make)
    }
}
