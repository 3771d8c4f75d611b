//! The builder of a reconciler.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::View;
use lariat_controller::{
    HandlerError, HandlerOptions, HandlerResult, RegisterError, Registration, Related, Relation,
    SharedController,
};

use tokio_util::sync::CancellationToken;

use super::pause::Pause;
use super::policy::Retry;
use super::setup::Setup;
use crate::needs::Rule;
use crate::reconcile::{Callback, OperatorState, Reconcile};

/// Builds a reconciler of a kind.
///
/// A reconciler is a named handler, so it has retries of its own, causes, timeouts, history and metrics. It is called
/// with a [`Reconcile`] for every object that exists and is not being deleted. [`options`](Self::options) sets the
/// options that all handlers have.
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
    pub(super) polls: Vec<Box<BeginPoll<K>>>,
    pub(super) options: HandlerOptions,
    pub(super) setup: Setup<K>,
}

/// The verbs that caches need.
const READS: [&str; 2] = ["list", "watch"];

/// Adds a relation for the reconciler with the given name.
pub(super) type Relate<K> = dyn FnOnce(&SharedController<K>) -> Related + Send;

/// Registers a polling source of the reconciler with the given name, until a token is cancelled.
pub(super) type BeginPoll<K> = dyn FnOnce(&SharedController<K>, &str, CancellationToken) -> Result<Registration, RegisterError>
    + Send;

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
            polls: Vec::new(),
            options: HandlerOptions::default(),
            setup: Setup::new(operator, Rule::of(kind).verbs(READS)),
        }
    }

    /// Also reconciles an object when an object it controls changes.
    ///
    /// That is one whose owner reference to it has `controller: true`.
    pub fn owns<B: View>(mut self, other: &SharedController<B>) -> Self {
        self.setup.owned.push(other.gvk().clone());
        self.watches(other, Relation::controllers())
    }

    /// Also reconciles an object when a related object of another kind changes.
    ///
    /// The relation names the objects, from the old and the new state of the changed one. Only this reconciler is
    /// called, whatever handler the relation names.
    pub fn watches<B: View, V: View>(
        mut self,
        other: &SharedController<B>,
        relation: Relation<V>,
    ) -> Self {
        self.setup.needs.push(Rule::of(other).verbs(READS));
        if !other.client().is_of(self.setup.operator.caches.clients()) {
            self.setup
                .foreign
                .get_or_insert_with(|| other.gvk().clone());
        }
        let (other, relation) = (other.clone(), relation.to(self.name.as_str()));
        let relate = move |kind: &SharedController<K>| kind.watch_related(&other, relation);
        self.relate.push(Box::new(relate));
        self
    }

    /// Sets the options of the handler, such as predicates, concurrency and timeout.
    ///
    /// Predicates judge changes of the kind itself. Deletions are always delivered, and with a finalizer also the
    /// beginning of a deletion.
    pub fn options(self, options: HandlerOptions) -> Self {
        Self { options, ..self }
    }

    /// Reconciles an object again this long after its last call (default: never).
    ///
    /// Zero means never. It applies after a success, an ignored error, and a final failure: a terminal error, or one
    /// after which the [retries](HandlerOptions::max_retries) are exhausted. An outcome with a delay of its own takes
    /// precedence.
    ///
    /// A failure that is retried follows its own delay or the [backoff](HandlerOptions::rate_limiter) instead, which
    /// may be longer than the period: the default backoff grows to two minutes.
    ///
    /// It replaces [`HandlerOptions::requeue_final`].
    pub fn requeue_after(mut self, period: Duration) -> Self {
        self.setup.requeue_after = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// Reconciles an object again at the latest this long after its last call.
    ///
    /// However that call ended. By default, and with zero, there is no limit. Use it for what no watch reports, such as the state of a system outside the cluster. It bounds
    /// what [`requeue_after`](Self::requeue_after) does not: it shortens longer delays of outcomes, of errors and of the
    /// backoff, also after panics and timeouts. After a terminal error, and once the retries are exhausted, the object
    /// is reconciled again after the period. Only a delay that the API server asks for remains.
    ///
    /// An object that is being deleted is included while it has the finalizer of the reconciler.
    pub fn at_least_every(self, period: Duration) -> Self {
        self.at_least_every_with(move |_| Some(period))
    }

    /// Does the same with a period of each object's own, or none.
    ///
    /// The function is called after each call of the reconciler, and must be fast.
    ///
    /// ```
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use lariat_operator::Reconciler;
    ///
    /// fn with_periods(reconciler: Reconciler<ConfigMap>) -> Reconciler<ConfigMap> {
    ///     reconciler.at_least_every_with(|map: &ConfigMap| {
    ///         let seconds = map.data.as_ref()?.get("poll-seconds")?.parse().ok()?;
    ///         Some(Duration::from_secs(seconds))
    ///     })
    /// }
    /// # let _ = with_periods;
    /// ```
    pub fn at_least_every_with(
        mut self,
        period: impl Fn(&K) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.setup.every = Some(Arc::new(period));
        self
    }

    /// Does not reconcile objects that have this annotation (default: there is no such annotation).
    ///
    /// Any value pauses an object, except `false`. While it is paused, the reconciler is not called, the finalizer is neither added nor is its cleanup called, so an object that is being deleted stays until the
    /// annotation is removed. Then it is reconciled, whatever predicates [`options`](Self::options) have. The history of
    /// the key shows calls that were left out as ignored, with the annotation, and so does the condition in which the
    /// reconciler [reports](Self::report_errors): it is `Unknown` with the reason `Paused`.
    ///
    /// To pause a reconciler for all objects, see [`HandlerOptions::paused`] and [`SharedController::pause`].
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use lariat_operator::Reconciler;
    ///
    /// // kubectl annotate deployment web example.com/paused=true
    /// fn pausable(reconciler: Reconciler<Deployment>) -> Reconciler<Deployment> {
    ///     reconciler.paused_by("example.com/paused")
    /// }
    /// # let _ = pausable;
    /// ```
    pub fn paused_by(mut self, annotation: &str) -> Self {
        self.setup.pause = Some(Pause::new(annotation));
        self
    }

    /// Also reconciles objects that are being deleted (default: they are not).
    ///
    /// Use it where others' finalizers keep the object and the reconciler has to do something meanwhile, without a
    /// finalizer of its own. It is called at the beginning of the deletion, whatever predicates
    /// [`options`](Self::options) have, and for later changes; [`raw`](Reconcile::raw) says whether the object is being
    /// deleted. The object may be gone before the call, so what must happen needs a [finalizer](Self::finalizer). While
    /// the object has the finalizer of this reconciler, its cleanup is called instead.
    pub fn with_deleting(mut self) -> Self {
        self.setup.with_deleting = true;
        self
    }

    /// Sets the policy for errors (default: [`Retry::backoff`]).
    ///
    /// It is not asked about terminal and ignored errors.
    pub fn on_error(
        mut self,
        policy: impl Fn(&HandlerError, &Reconcile<K>) -> Retry + Send + Sync + 'static,
    ) -> Self {
        self.setup.on_error = Some(Box::new(policy));
        self
    }

    /// Sets a function to call once an object is deleted, with its last known state.
    ///
    /// It is called before another object of the same name is reconciled, and once for each deleted object if several
    /// of the name were deleted meanwhile, up to 32. Predicates do not apply, so the object may never have been
    /// reconciled.
    ///
    /// Deleted means removed from the cache. An object that leaves the [selection](lariat_cache::Selection) of its
    /// kind, for example by a change of its labels, counts as well although it still exists. With a selection, check
    /// the API server ([`CachedApi::get_live`](crate::CachedApi::get_live)) before you delete what belongs to the
    /// object.
    ///
    /// It is called again only after a retryable error or a panic; a delay it returns is ignored. If it fails, the
    /// other object of the name is reconciled all the same, and from the second attempt on it is reconciled first.
    ///
    /// Deletions while no process watches are not reported, nor is that of an object of which the cache had only
    /// metadata ([`Storage::OnDemand`](lariat_cache::Storage::OnDemand), a memory budget), unless the reconciler reads
    /// metadata. Cleanup that must happen needs a finalizer.
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
