//! Reconcilers: what brings the world to what an object says.

mod claimed;
mod claims;
mod ends;
mod error;
mod policy;
mod reconcile;
mod registration;
mod run;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{CachedObject, Change, View};
use lariat_controller::{
    HandlerError, HandlerOptions, HandlerResult, Predicate, Related, Relation, SharedController,
};

use crate::finalizer;
use crate::guard::{Guard, ReconcilerGate};
use crate::names;
use crate::operator::Shared;
use crate::rbac::{self, Rule};
use crate::status::Report;
use claimed::Claim;
pub(crate) use claimed::Claimed;
use claims::Claims;
pub use error::ReconcilerError;
use policy::ErrorPolicy;
pub use policy::Retry;
pub use reconcile::Reconcile;
pub(crate) use reconcile::{Held, Own};
pub use registration::ReconcilerRegistration;
pub(crate) use run::{Call, Callback};

/// A reconciler of a kind, on its way to be registered.
///
/// It is a named handler underneath, so what holds of handlers holds of it: retries of its own, causes, timeouts,
/// history, metrics. It is called with a [`Reconcile`] for every object that exists and is not being deleted.
///
/// Each method is about one thing; what handlers can be told in general is told by [`options`](Self::options).
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
    name: String,
    kind: SharedController<K>,
    relate: Vec<Box<Relate<K>>>,
    options: HandlerOptions,
    pub(crate) setup: Setup<K>,
}

/// What caches do.
const READS: [&str; 2] = ["list", "watch"];

/// Begins a relation of the kind for the reconciler of a name.
type Relate<K> = dyn FnOnce(&SharedController<K>) -> Related + Send;

/// What a reconciler does beside reconciling.
pub(crate) struct Setup<K> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) requeue_after: Option<Duration>,
    pub(crate) on_error: Option<Box<ErrorPolicy<K>>>,
    pub(crate) on_gone: Option<Callback<K>>,
    pub(crate) guards: Vec<Guard>,
    /// What it needs to be allowed.
    pub(crate) needs: Vec<Rule>,
    pub(crate) finalizer: Option<finalizer::Held<K>>,
    pub(crate) report: Option<Report>,
}

impl<K: View> Reconciler<K> {
    pub(crate) fn new(name: &str, kind: &SharedController<K>, shared: &Arc<Shared>) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.clone(),
            relate: Vec::new(),
            options: HandlerOptions::default(),
            setup: Setup {
                shared: Arc::clone(shared),
                requeue_after: None,
                on_error: None,
                on_gone: None,
                guards: Vec::new(),
                needs: vec![Rule::of(kind).verbs(READS)],
                finalizer: None,
                report: None,
            },
        }
    }

    pub(crate) fn kind(&self) -> &SharedController<K> {
        &self.kind
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

    /// Sets what handlers can be told: predicates, concurrency, timeout, retries, priority and so on.
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
    /// It takes the place of [`HandlerOptions::requeue_given_up`].
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
    /// What happens while no process watches is not told, nor is the end of an object of which the cache kept only
    /// metadata ([`Storage::OnDemand`](lariat_cache::Storage::OnDemand), a memory budget), unless that is what is
    /// read. Cleanup that must not be missed needs a finalizer.
    pub fn on_gone<F, Fut>(mut self, gone: F) -> Self
    where
        F: Fn(Reconcile<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult> + Send + 'static,
    {
        self.setup.on_gone = Some(Callback::new(gone));
        self
    }

    /// Registers the reconciler. On a factory that runs, it is called for every object there is.
    ///
    /// # Errors
    ///
    /// As for [`SharedController::register_handler`], and if its operator, finalizer or condition have names the API
    /// server would refuse, another reconciler of the kind in this operator has the finalizer or tells in the
    /// condition, or the controller is one of another factory than the operator's; nothing is left behind.
    ///
    /// # Panics
    ///
    /// If the factory runs and this is the first use of the kind: outside a tokio runtime.
    pub fn register<F, Fut>(self, reconcile: F) -> Result<ReconcilerRegistration, ReconcilerError>
    where
        F: Fn(Reconcile<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult> + Send + 'static,
    {
        self.check()?;
        let Self {
            name,
            kind,
            relate,
            mut options,
            mut setup,
        } = self;
        options = options.gate(ReconcilerGate::of(&setup));
        if let Some(after) = setup.after_giving_up() {
            options = options.requeue_given_up(after);
        }
        // A reconciler whose token is cancelled has lost what it claims, like its name.
        kind.sweep();
        let claims = Claims::begin(&setup.shared, (kind.gvk(), &name), setup.claims())?;
        let needs = std::mem::take(&mut setup.needs);
        options = options.also(setup.told());
        let call = Call::new(setup, Callback::new(reconcile));
        claims.count(Arc::downgrade(&call) as _);
        // First, so that related caches are filled before the first call.
        claims.hold(relate.into_iter().map(|relate| relate(&kind)).collect());
        let ended = Arc::clone(&claims);
        options = options.on_end(move || ended.release());
        let handler = move |cx| {
            let call = Arc::clone(&call);
            async move { call.run(cx).await }
        };
        match kind.register_handler_with(&name, options, handler) {
            Ok(registration) => {
                let because = || format!("reconciler {name} of {}", kind.gvk());
                let identity = registration.identity().map(rbac::impersonation);
                let needs = needs.into_iter().chain(identity.into_iter().flatten());
                claims.need(needs.map(|rule| rule.because_of(because)));
                Ok(ReconcilerRegistration::new(registration, claims))
            }
            Err(error) => {
                claims.release();
                Err(error.into())
            }
        }
    }

    /// Checks what would show only in what the reconciler writes.
    fn check(&self) -> Result<(), ReconcilerError> {
        let (gvk, name) = (self.kind.gvk(), &self.name);
        let operator = &self.setup.shared.name;
        if !self.kind.client().is_of(self.setup.shared.caches.clients()) {
            return Err(ReconcilerError::OtherFactory {
                gvk: gvk.clone(),
                name: name.clone(),
                operator: operator.to_string(),
            });
        }
        if let Some(why) = names::not_a_manager(operator) {
            return Err(ReconcilerError::OperatorName {
                gvk: gvk.clone(),
                name: name.clone(),
                operator: operator.to_string(),
                why,
            });
        }
        let finalizer = self
            .setup
            .finalizer
            .as_ref()
            .map_or(Ok(()), finalizer::Held::check);
        finalizer.map_err(|source| ReconcilerError::Finalizer {
            gvk: gvk.clone(),
            name: name.clone(),
            source,
        })?;
        let report = self.setup.report.as_ref().map_or(Ok(()), Report::check);
        report.map_err(|source| ReconcilerError::Condition {
            gvk: gvk.clone(),
            name: name.clone(),
            source,
        })
    }
}

/// How long after a cleanup failed for good it is called again, unless the reconciler has a period.
const CLEANUP_PERIOD: Duration = Duration::from_secs(600);

impl<K: View> Setup<K> {
    /// Returns what no other reconciler of the kind may have.
    fn claims(&self) -> Vec<Claim> {
        let condition = self.report.as_ref().map(Report::kind);
        let finalizer = self.finalizer.as_ref().map(finalizer::Held::name);
        let condition = condition.map(Claim::Condition);
        condition
            .into_iter()
            .chain(finalizer.map(Claim::Finalizer))
            .collect()
    }

    /// Returns what says when the reconciler is called again for an object for which it failed for good: there may be
    /// no watch for what it looks at, and nothing else happens to an object that waits for its cleanup.
    fn after_giving_up(
        &self,
    ) -> Option<impl Fn(Option<&CachedObject>) -> Option<Duration> + Send + Sync + use<K>> {
        let period = self.requeue_after;
        let finalizer = self.finalizer.as_ref().map(finalizer::Held::name);
        let after = move |object: Option<&CachedObject>| {
            let object = object?;
            let finalizer = finalizer.as_deref().filter(|_| object.is_deleting());
            let waits =
                finalizer.is_some_and(|name| object.finalizers().any(|each| *each == *name));
            period.or(waits.then_some(CLEANUP_PERIOD))
        };
        (period.is_some() || self.finalizer.is_some()).then_some(after)
    }

    /// Returns which changes are told whatever the options say.
    fn told(&self) -> Predicate {
        // Also without a function for it: sets that were applied are forgotten then.
        let gone = Predicate::new(|change| matches!(change, Change::Deleted { .. }));
        match &self.finalizer {
            Some(finalizer) => gone.or(finalizer.told()),
            None => gone,
        }
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
