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

/// Builds a reconciler for a kind.
///
/// A reconciler is a named handler, so it has its own retries, causes, timeouts, history and metrics. It is called with
/// a [`Reconcile`] for every object that exists and is not being deleted. The methods of this builder add what
/// reconcilers need beyond handlers; [`options`](Self::options) sets the options that all handlers have.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
/// use lariat::{HandlerOptions, HandlerResult, Operator, Outcome, Predicate, Reconcile, SharedControllerFactory};
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

/// Adds a relation to the reconciler's controller.
pub(super) type Relate<K> = dyn FnOnce(&SharedController<K>) -> Related + Send;

/// Registers a polling source of the reconciler, until a token is cancelled.
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

    /// Also reconciles an object when an object that it controls changes.
    ///
    /// Those are the objects with an owner reference to it with `controller: true`, such as all objects that
    /// [`apply`](Reconcile::apply) writes.
    pub fn owns<B: View>(mut self, other: &SharedController<B>) -> Self {
        self.setup.owned.push(other.gvk().clone());
        self.watches(other, Relation::controllers())
    }

    /// Also reconciles an object when a related object of another kind changes.
    ///
    /// The relation returns the keys to reconcile, from the old and the new state of the changed object. Only this
    /// reconciler is called, whatever handler the relation names.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
    /// use lariat::operator::Reconciler;
    /// use lariat::{ObjectKey, Relation, SharedController};
    ///
    /// /// Reconciles a Namespace when a ConfigMap in it changes.
    /// fn with_configs(reconciler: Reconciler<Namespace>, configs: &SharedController<ConfigMap>) -> Reconciler<Namespace> {
    ///     reconciler.watches(configs, Relation::map(|config: &ConfigMap| {
    ///         config.metadata.namespace.iter().map(|name| ObjectKey::cluster(name)).collect::<Vec<_>>()
    ///     }))
    /// }
    /// # let _ = with_configs;
    /// ```
    pub fn watches<B: View, V: View>(
        mut self,
        other: &SharedController<B>,
        relation: Relation<V>,
    ) -> Self {
        self.setup.needs.push(Rule::of(other).verbs(READS));
        // Reported by `register`, since a method of the builder cannot fail.
        if !other.client().is_of(self.setup.operator.caches.clients()) {
            self.setup
                .foreign
                .get_or_insert_with(|| other.gvk().clone());
        }
        // To this reconciler alone: other handlers of the kind have not asked for the relation.
        let (other, relation) = (other.clone(), relation.to(self.name.as_str()));
        let relate = move |kind: &SharedController<K>| kind.watch_related(&other, relation);
        self.relate.push(Box::new(relate));
        self
    }

    /// Takes over what the reconciler wrote under a former name.
    ///
    /// These are the objects of its [set](Reconcile::apply) and the fields of [statuses](crate::StatusWriter) that it
    /// applied. Without it, fields that it does not apply any more stay, and so do the objects. Repeated calls add
    /// further names. Once every object was reconciled under the new name, the call can be removed.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use lariat::{Operator, SharedControllerFactory};
    ///
    /// # fn example(factory: SharedControllerFactory) {
    /// let operator = Operator::new("shop-operator", &factory).renamed_from("shops");
    /// let reconciler = operator.reconciler("web", &factory.for_object::<Deployment>()).renamed_from("deployments");
    /// # drop(reconciler);
    /// # }
    /// ```
    pub fn renamed_from(mut self, name: &str) -> Self {
        self.setup.former.push(name.to_owned());
        self
    }

    /// Sets the options of the handler, such as predicates, concurrency and timeout.
    ///
    /// Predicates filter changes of the kind itself. Deletions are always delivered. With a finalizer, so is the
    /// beginning of a deletion.
    pub fn options(self, options: HandlerOptions) -> Self {
        Self { options, ..self }
    }

    /// Reconciles an object again this long after its last call at the latest.
    ///
    /// By default, and with zero, it is not. A call that is scheduled already stays, so changes in between do not
    /// postpone it. The period applies after a success, an ignored error, and a final failure: a terminal error, or one
    /// after which the [retries](HandlerOptions::max_retries) are exhausted. An outcome with its own delay takes
    /// precedence. A failure that is retried follows its own delay or the [backoff](HandlerOptions::rate_limiter)
    /// instead, which may be longer than the period: the default backoff grows to two minutes.
    ///
    /// It replaces [`HandlerOptions::requeue_final`].
    pub fn requeue_after(mut self, period: Duration) -> Self {
        self.setup.requeue_after = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// Limits the time until an object is reconciled again.
    ///
    /// By default, and with zero, there is no limit. It applies however the last call ended. Use it to observe state
    /// that no watch reports, such as that of a system outside the cluster. Unlike
    /// [`requeue_after`](Self::requeue_after), it also shortens longer delays of outcomes, of errors and of the
    /// backoff, and applies after panics and timeouts. After a terminal error, and once the retries are exhausted, the
    /// object is reconciled again after the period. Only a delay that the API server requests is kept.
    ///
    /// An object that is being deleted is included while it has the finalizer of the reconciler.
    pub fn at_least_every(self, period: Duration) -> Self {
        self.at_least_every_with(move |_| Some(period))
    }

    /// Limits the time until an object is reconciled again, for each object.
    ///
    /// Otherwise like [`at_least_every`](Self::at_least_every). `None` means no limit. The function is called after
    /// each call of the reconciler. It must not block.
    ///
    /// ```
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use lariat::operator::Reconciler;
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

    /// Skips objects that have this annotation (default: none are skipped).
    ///
    /// Any value except `false` pauses an object. While it is paused, the reconciler is not called, its finalizer is
    /// not added, and its cleanup is not called, so an object that is being deleted stays. When the annotation is
    /// removed, the object is reconciled, whatever predicates [`options`](Self::options) have. The history of the key
    /// shows the skipped calls as ignored, with the annotation. So does the condition in which the reconciler
    /// [reports](Self::report_errors): it is `Unknown` with the reason `Paused`.
    ///
    /// To pause a reconciler for all objects, use [`HandlerOptions::paused`] or [`SharedController::pause`].
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use lariat::operator::Reconciler;
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

    /// Also reconciles objects that are being deleted (default: they are skipped).
    ///
    /// Use it if other programs' finalizers keep the object, and the reconciler has something to do meanwhile. It is
    /// called at the beginning of the deletion, whatever predicates [`options`](Self::options) have, and for later
    /// changes; [`raw`](Reconcile::raw) tells whether the object is being deleted. The object may be deleted before the
    /// call, so work that must be done needs a [finalizer](Self::finalizer). While the object has the finalizer of this
    /// reconciler, the cleanup is called instead.
    pub fn with_deleting(mut self) -> Self {
        self.setup.with_deleting = true;
        self
    }

    /// Sets the policy for errors (default: [`Retry::backoff`]).
    ///
    /// It is not called for terminal and ignored errors.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use lariat::operator::{Reconciler, Retry};
    ///
    /// fn patient(reconciler: Reconciler<ConfigMap>) -> Reconciler<ConfigMap> {
    ///     reconciler.on_error(|error, cx| match cx.attempt() {
    ///         1..=5 => Retry::backoff(),
    ///         _ => Retry::after(Duration::from_secs(600)),
    ///     })
    /// }
    /// # let _ = patient;
    /// ```
    pub fn on_error(
        mut self,
        policy: impl Fn(&HandlerError, &Reconcile<K>) -> Retry + Send + Sync + 'static,
    ) -> Self {
        self.setup.on_error = Some(Box::new(policy));
        self
    }

    /// Sets a function that is called after an object is deleted, with its last state.
    ///
    /// Use it to release local resources, such as entries in a map. Cleanup that must happen needs a
    /// [finalizer](Self::finalizer): deletions that happen while no process watches are not reported. Neither is the
    /// deletion of an object of which only metadata was cached ([`Storage::OnDemand`](lariat_cache::Storage::OnDemand),
    /// a memory budget), unless the reconciler reads metadata.
    ///
    /// **Order.** It is called before another object of the same name is reconciled, and once for each of several
    /// deleted objects of the name, up to 32. Predicates do not apply, so the object may never have been reconciled.
    ///
    /// **Selections.** Deleted means removed from the cache. An object that leaves the
    /// [selection](lariat_cache::Selection) of its kind, for example by a change of its labels, counts as deleted
    /// although it still exists. With a selection, check the API server
    /// ([`CachedApi::get_live`](crate::CachedApi::get_live)) before you delete resources of the object. A kind that is
    /// not served any more loses no object on that account.
    ///
    /// **Retries.** It is called again only after a retryable error or a panic; a delay that it returns is ignored. If
    /// it fails, the other object of the name is reconciled all the same, and from the second attempt on it is
    /// reconciled first.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use lariat::operator::Reconciler;
    /// use lariat::{Outcome, Reconcile};
    ///
    /// fn logging(reconciler: Reconciler<ConfigMap>) -> Reconciler<ConfigMap> {
    ///     reconciler.on_deleted(|cx: Reconcile<ConfigMap>| async move {
    ///         println!("{} was deleted; its data was {:?}", cx.key(), cx.object().data);
    ///         Ok(Outcome::done())
    ///     })
    /// }
    /// # let _ = logging;
    /// ```
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
