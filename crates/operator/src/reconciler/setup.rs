//! The settings of a reconciler, apart from its function.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lariat_cache::{CachedObject, Change, View};
use lariat_controller::Predicate;
use lariat_core::Gvk;

use super::gate::Guards;
use super::pause::Pause;
use super::policy::ErrorPolicy;
use crate::finalizer::HeldFinalizer;
use crate::needs::Rule;
use crate::reconcile::{Callback, Claim, OfReconciler, OperatorState};
use crate::status::Report;

/// The delay of a cleanup after a final failure, if the reconciler has no period.
const CLEANUP_PERIOD: Duration = Duration::from_secs(600);

/// Returns the period of an object.
pub(super) type Period<K> = dyn Fn(&K) -> Option<Duration> + Send + Sync;

/// The settings of a reconciler, apart from its function.
pub(super) struct Setup<K> {
    pub(super) operator: Arc<OperatorState>,
    /// A related kind of another factory, for the error.
    pub(super) foreign: Option<Gvk>,
    pub(super) requeue_after: Option<Duration>,
    /// The longest time between two calls for an object.
    pub(super) every: Option<Arc<Period<K>>>,
    pub(super) pause: Option<Pause>,
    /// Whether the reconciler is also called for objects that are being deleted.
    pub(super) with_deleting: bool,
    pub(super) on_error: Option<Box<ErrorPolicy<K>>>,
    pub(super) on_deleted: Option<Callback<K>>,
    pub(super) guards: Guards,
    /// The declared permissions.
    pub(super) needs: Vec<Rule>,
    pub(super) finalizer: Option<HeldFinalizer<K>>,
    pub(super) report: Option<Report>,
    /// The kinds whose objects the reconciled objects own.
    pub(super) owned: Vec<Gvk>,
    /// The names that the reconciler had before.
    pub(super) former: Vec<String>,
    /// Set once the reconciler has ended.
    pub(super) ended: Arc<AtomicBool>,
}

impl<K: View> Setup<K> {
    /// Creates the settings, with the rule that every reconciler of the kind needs.
    pub(super) fn new(operator: &Arc<OperatorState>, reads: Rule) -> Self {
        Self {
            operator: Arc::clone(operator),
            foreign: None,
            requeue_after: None,
            every: None,
            pause: None,
            with_deleting: false,
            on_error: None,
            on_deleted: None,
            guards: Guards::default(),
            needs: vec![reads],
            finalizer: None,
            report: None,
            owned: Vec::new(),
            former: Vec::new(),
            ended: Arc::default(),
        }
    }

    /// Returns the facts about the reconciler that its calls need.
    pub(super) fn of_reconciler(&self) -> OfReconciler {
        OfReconciler {
            reported: self.report.as_ref().map(Report::kind),
            owned: self.owned.clone().into(),
            former: self.former.clone().into(),
            ended: Arc::clone(&self.ended),
        }
    }

    /// Returns the things that no other reconciler of the kind may have.
    pub(super) fn claims(&self) -> Vec<Claim> {
        let condition = self.report.as_ref().map(Report::kind);
        let finalizer = self.finalizer.as_ref().map(HeldFinalizer::name);
        let conditions = condition.map(Claim::Condition).into_iter();
        conditions.chain(finalizer.map(Claim::Finalizer)).collect()
    }

    /// Returns the function for the delay after a final failure.
    ///
    /// Without it the object would wait for a change. There may be none: nothing watches the systems outside the
    /// cluster, and an object that waits for its cleanup does not change.
    pub(super) fn after_final_failure(
        &self,
        gvk: &Gvk,
    ) -> Option<impl Fn(Option<&Arc<CachedObject>>) -> Option<Duration> + Send + Sync + use<K>>
    {
        let period = self.requeue_after;
        let every = self.longest_delay(gvk);
        let finalizer = self.finalizer.as_ref().map(HeldFinalizer::name);
        let is_needed = period.is_some() || every.is_some() || finalizer.is_some();
        let after = move |object: Option<&Arc<CachedObject>>| {
            let every = every.as_ref().and_then(|every| every(object));
            let object = object?;
            let finalizer = finalizer.as_deref().filter(|_| object.is_deleting());
            let waits =
                finalizer.is_some_and(|name| object.finalizers().any(|each| *each == *name));
            // An object with a pending cleanup is retried for ever: its deletion depends on it.
            let usual = period.or(waits.then_some(CLEANUP_PERIOD));
            usual.into_iter().chain(every).min()
        };
        is_needed.then_some(after)
    }

    /// Returns the function for the longest delay until the next call, if there is one.
    pub(super) fn longest_delay(
        &self,
        gvk: &Gvk,
    ) -> Option<impl Fn(Option<&Arc<CachedObject>>) -> Option<Duration> + Send + Sync + use<K>>
    {
        let (every, gvk) = (Arc::clone(self.every.as_ref()?), gvk.clone());
        Some(move |object: Option<&Arc<CachedObject>>| {
            // An object that does not decode has no known period.
            let object = K::view(object?, &gvk).ok()?;
            limit(&*every, &object)
        })
    }

    /// Returns the longest delay until the next call for an object, if there is one.
    pub(super) fn longest_delay_of(&self, object: &K) -> Option<Duration> {
        limit(&**self.every.as_ref()?, object)
    }

    /// Returns the predicate of changes that the options must not filter out.
    pub(super) fn needed(&self) -> Predicate {
        // Deletions are needed even without `on_deleted`: the memory of applied sets forgets the owner.
        let gone = Predicate::new(|change| matches!(change, Change::Deleted { .. }));
        let finalizer = self.finalizer.as_ref().map(HeldFinalizer::needed);
        let resumed = self.pause.as_ref().map(Pause::needed);
        let begins = Predicate::new(|change| match change {
            Change::Updated { old, new } => new.is_deleting() && !old.is_deleting(),
            _ => false,
        });
        let begins = self.with_deleting.then_some(begins);
        let all = [finalizer, resumed, begins].into_iter().flatten();
        all.fold(gone, Predicate::or)
    }
}

/// Returns the period of an object; zero means none.
fn limit<K>(period: &Period<K>, object: &K) -> Option<Duration> {
    period(object).filter(|period| !period.is_zero())
}
