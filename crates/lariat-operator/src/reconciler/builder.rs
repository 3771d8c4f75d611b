//! A reconciler on its way to be registered.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::View;
use lariat_controller::{
    HandlerError, HandlerOptions, HandlerResult, Related, Relation, SharedController,
};

use super::policy::Retry;
use super::setup::Setup;
use crate::needs::Rule;
use crate::reconcile::{Callback, OperatorState, Reconcile};

/// A reconciler of a kind, on its way to be registered.
///
/// It is a named handler underneath, so what holds of handlers holds of it: retries of its own, causes, timeouts,
/// history, metrics. It is called with a [`Reconcile`] for every object that exists and is not being deleted.
///
/// Each method is about one thing; the options of handlers in general are set by [`options`](Self::options).
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
/// use lariat_controller::{HandlerOptions, HandlerResult, Outcome, Predicate, SharedControllerFactory};
/// use lariat_operator::{Operator, Reconcile};
///
/// async fn reconcile(cx: Reconcile<Deployment>) -> HandlerResult {
///     println!("{} wants {:?}", cx.key(), cx.object().spec);
///     Ok(Outcome::done())
/// }
///
/// # fn example(factory: SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
/// let operator = Operator::new("deployer", &factory);
/// operator
///     .reconciler("deployments", &factory.for_object::<Deployment>())
///     .owns(&factory.for_object::<ReplicaSet>())
///     .options(HandlerOptions::default().concurrency(2).only(Predicate::generation_changed()))
///     .requeue_after(Duration::from_secs(600))
///     .register(reconcile)?;
/// # Ok(()) }
/// ```
#[must_use = "a reconciler does nothing until it is registered"]
pub struct Reconciler<K> {
    pub(super) name: String,
    pub(super) kind: SharedController<K>,
    pub(super) relate: Vec<Box<Relate<K>>>,
    pub(super) options: HandlerOptions,
    pub(super) setup: Setup<K>,
}

/// What caches do.
const READS: [&str; 2] = ["list", "watch"];

/// Begins a relation of the kind for the reconciler of a name.
pub(super) type Relate<K> = dyn FnOnce(&SharedController<K>) -> Related + Send;

impl<K: View> Reconciler<K> {
    pub(crate) fn new(
        name: &str,
        kind: &SharedController<K>,
        operator: &Arc<OperatorState>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.clone(),
            relate: Vec::new(),
            options: HandlerOptions::default(),
            setup: Setup::new(operator, Rule::of(kind).verbs(READS)),
        }
    }

    /// Reconciles an object when one that it controls changes: one whose owner reference says `controller: true`.
    pub fn owns<B: View>(self, other: &SharedController<B>) -> Self {
        self.watches(other, Relation::controllers())
    }

    /// Reconciles the objects that one of another kind has to do with when that changes, by its old and its new state.
    ///
    /// Only this reconciler is called, whatever handler the relation names.
    pub fn watches<B: View, V: View>(
        mut self,
        other: &SharedController<B>,
        relation: Relation<V>,
    ) -> Self {
        self.setup.needs.push(Rule::of(other).verbs(READS));
        let (other, relation) = (other.clone(), relation.to(self.name.as_str()));
        let relate = move |kind: &SharedController<K>| kind.watch_related(&other, relation);
        self.relate.push(Box::new(relate));
        self
    }

    /// Sets the options of the handler: predicates, concurrency, timeout, retries, priority and so on.
    ///
    /// A predicate judges changes of the kind itself: deletions are always delivered, and to a reconciler with a
    /// finalizer also that an object is being deleted.
    pub fn options(self, options: HandlerOptions) -> Self {
        Self { options, ..self }
    }

    /// Reconciles an object again after this period (default: when something happens; zero means so too): this long
    /// after it went well, was ignored, or failed for good, by a terminal error or because the
    /// [retries](HandlerOptions::max_retries) are used up. An outcome with a delay of its own is left as it is.
    ///
    /// A failure that is tried again follows its delay or the [backoff](HandlerOptions::rate_limiter) instead, which
    /// may be longer than the period: with the default backoff it is up to two minutes.
    ///
    /// It takes the place of [`HandlerOptions::requeue_final`].
    pub fn requeue_after(mut self, period: Duration) -> Self {
        self.setup.requeue_after = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// Decides what an error leads to (default: [`Retry::backoff`]). Errors that are terminal, or to be ignored, are
    /// not asked about.
    pub fn on_error(
        mut self,
        policy: impl Fn(&HandlerError, &Reconcile<K>) -> Retry + Send + Sync + 'static,
    ) -> Self {
        self.setup.on_error = Some(Box::new(policy));
        self
    }

    /// Calls a function once an object is gone, with its last known state, and before another object of its name is
    /// reconciled; for each of several objects of the name that went meanwhile, up to 32. Predicates are not asked
    /// about it, so the object may be one that was never reconciled.
    ///
    /// Gone means gone from the cache: an object that leaves the [selection](lariat_cache::Selection) of its kind, by a
    /// change of its labels for instance, counts as well, and still exists. Where there is a selection, look at the API
    /// server ([`CachedApi::get_live`](crate::CachedApi::get_live)) before deleting what belongs to the object.
    ///
    /// It is called again only after an error that is to be tried again, or a panic; a delay it asks for is ignored.
    /// If it fails, the other object of the name is reconciled all the same; from the second attempt on, it is reconciled
    /// first.
    ///
    /// What happens while no process watches is not reported, nor is the end of an object of which the cache kept only
    /// metadata ([`Storage::OnDemand`](lariat_cache::Storage::OnDemand), a memory budget), unless that is what is
    /// read. Cleanup that must not be missed needs a finalizer.
    pub fn on_deleted<F, Fut>(mut self, gone: F) -> Self
    where
        F: Fn(Reconcile<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult> + Send + 'static,
    {
        self.setup.on_deleted = Some(Callback::new(gone));
        self
    }
}

impl<K> fmt::Debug for Reconciler<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconciler")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("related", &self.relate.len())
            .finish_non_exhaustive()
    }
}
