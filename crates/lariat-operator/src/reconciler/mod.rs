//! Reconcilers: what brings the world to what an object says.

mod claims;
mod error;
mod policy;
mod reconcile;
mod registration;
mod run;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{Change, View};
use lariat_controller::{
    HandlerError, HandlerOptions, HandlerResult, Predicate, Related, Relation, SharedController,
};

use crate::finalizer::Held;
use crate::guard::{Guard, ReconcilerGate};
use crate::names;
use crate::operator::Shared;
use crate::rbac::{self, Rule};
use crate::status::Report;
use claims::Claims;
pub use error::ReconcilerError;
use policy::ErrorPolicy;
pub use policy::Retry;
pub(crate) use reconcile::Own;
pub use reconcile::Reconcile;
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
    pub(crate) finalizer: Option<Held<K>>,
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
    /// A predicate judges changes of the kind itself: that an object is gone is always told, and that it is being deleted
    /// to a reconciler with a finalizer.
    pub fn options(self, options: HandlerOptions) -> Self {
        Self { options, ..self }
    }

    /// Reconciles an object again this long after it went well (default: when something happens; zero means so too). An
    /// outcome with a delay of its own is left as it is.
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
    /// reconciled. Predicates are not asked about it, so the object may be one that was never reconciled.
    ///
    /// It is called again only after an error that is to be tried again; a delay it asks for is ignored. What happens
    /// while no process watches is not told, nor is the end of an object of which the cache kept only metadata
    /// ([`Storage::OnDemand`](lariat_cache::Storage::OnDemand), a memory budget), unless that is what is read. Cleanup
    /// that must not be missed needs a finalizer.
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
    /// As for [`SharedController::register_handler`], and if its operator, finalizer or condition have names the API server
    /// would refuse, or another reconciler tells in the condition; nothing is left behind.
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
        let reported = setup.report.as_ref().map(Report::kind);
        // A reconciler whose token is cancelled has lost what it claims, like its name.
        kind.sweep();
        let claims = Claims::begin(&setup.shared, (kind.gvk(), &name), reported)?;
        let needs = std::mem::take(&mut setup.needs);
        options = options.also(setup.told());
        let call = Call::new(setup, Callback::new(reconcile));
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

    /// Checks what only the API server would find wrong.
    fn check(&self) -> Result<(), ReconcilerError> {
        let (gvk, name) = (self.kind.gvk(), &self.name);
        let operator = &self.setup.shared.name;
        if let Some(why) = names::not_a_manager(operator) {
            return Err(ReconcilerError::OperatorName {
                gvk: gvk.clone(),
                name: name.clone(),
                operator: operator.to_string(),
                why,
            });
        }
        let finalizer = self.setup.finalizer.as_ref().map_or(Ok(()), Held::check);
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

impl<K: View> Setup<K> {
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
