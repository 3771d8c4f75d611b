//! A guard: its budgets, and what it has counted.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::PendingWrite;
use lariat_core::Remembered;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::budget::Budget;
use super::rules::{Act, Rule, Verbs, Weights};
use super::state::{Counts, GuardState, Request, Ruling, Ticket};
use crate::refusal::exempt;

/// Budgets for what a handler writes: when one is used up, the guard trips, and what it covers is refused from then on.
///
/// It is for the day on which a handler is wrong: a selector that matches everything, a cache that shows nothing. A
/// write that is refused is not sent, and fails with a [`GuardError`](crate::GuardError). A reconciler that fails so is called again every
/// minute, or when the guard [resets itself](Self::reset_after), as often as it takes: that is not counted among the
/// failures after which [`max_retries`](lariat_controller::HandlerOptions::max_retries) gives up. Another handler, and
/// a reconciler with an [`on_error`](crate::Reconciler::on_error), is called again as after any other failure, and gives up
/// so. Tripping is logged once, as an error.
///
/// A clone is the same guard with the same budgets: give clones to several reconcilers, and they have them in common;
/// keep one to look at its [`state`](Self::state) and to [`reset`](Self::reset) it. A method that adds to a guard makes
/// a new one, which knows nothing of the other.
///
/// - It sees the writes of a reconciler's calls, through whatever client of the factory; see
///   [`Gate`](lariat_controller::Gate) for what that leaves out.
/// - Deletions are `delete`, `deletecollection` and evictions. A collection counts as the objects of it that are cached,
///   and as one at least; where [the cache does not say](lariat_cache::PendingWrite::objects), it is refused. So is the
///   deletion of a Namespace or a CustomResourceDefinition, unless it has a [weight](Self::weight). What the garbage
///   collector deletes with an owner is not counted.
/// - Writes of `status` are not counted and never refused, so a handler can report what is wrong, nor is what is
///   [exempt](Self::exempt), nor dry runs.
/// - A write is counted before it is sent, so workers cannot exceed a budget together, and given back if the API server
///   refused it or was not reached, or if it changed nothing: the answer to an update or patch has the resource version
///   that is cached. One whose end is not known stays counted: no answer, an answer with a 5xx, a call that was dropped.
///
/// What it counted is in memory: a process that starts again starts with unused budgets, and has not tripped.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat_controller::{HandlerResult, Outcome, SharedControllerFactory};
/// use lariat_operator::{Budget, Guard, Operator, Reconcile};
///
/// # async fn reap(_: Reconcile<Pod>) -> HandlerResult { Ok(Outcome::done()) }
/// # fn example(factory: SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
/// let minute = Duration::from_secs(60);
/// let guard = Guard::new()
///     .deletes(Budget::rate(10, minute))
///     .deletes(Budget::share(0.2, 10 * minute).at_least(3))
///     .writes(Budget::rate(500, minute));
/// Operator::new("reaper", &factory)
///     .reconciler("pods", &factory.for_object::<Pod>())
///     .guard(guard.clone())
///     .register(reap)?;
/// println!("{}", guard.state());
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
#[must_use = "a guard does nothing until a reconciler has it"]
pub struct Guard(Arc<Inner>);

#[derive(Default)]
struct Inner {
    rules: Vec<Rule>,
    weights: Weights,
    reset_after: Option<Duration>,
    state: Mutex<Counts>,
}

impl Guard {
    /// Makes a guard without budgets, which refuses nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a budget for deletions.
    pub fn deletes(self, budget: Budget) -> Self {
        self.with(Verbs::Deletes, budget)
    }

    /// Adds a budget for creations. Server-side apply, which may create, is a [change](Self::changes).
    pub fn creates(self, budget: Budget) -> Self {
        self.with(Verbs::Creates, budget)
    }

    /// Adds a budget for updates and patches, and for what is created of subresources: bindings, calls into pods.
    pub fn changes(self, budget: Budget) -> Self {
        self.with(Verbs::Changes, budget)
    }

    /// Adds a budget for all writes together, deletions included.
    pub fn writes(self, budget: Budget) -> Self {
        self.with(Verbs::All, budget)
    }

    /// Makes a guard that has tripped reset itself after this long (default: never; zero means never too).
    ///
    /// A handler that is wrong then goes on at the rate its budgets allow in that time.
    pub fn reset_after(self, pause: Duration) -> Self {
        self.changed(|inner| inner.reset_after = Some(pause).filter(|pause| !pause.is_zero()))
    }

    /// Sets as how many objects the deletion of one of a kind counts (default 1; zero means that it is not counted). The
    /// kind is named as in a rule of a role: by its group, which is empty for core kinds, and its plural.
    ///
    /// The deletion of a Namespace or a CustomResourceDefinition takes all along that is in it, so a budget of one such
    /// "object" protects nothing. A guard with a budget that covers deletions refuses them, unless they have a weight
    /// here. For other kinds whose deletion has the garbage collector delete what they own, a weight is a choice: without
    /// one, a Deployment counts as one, and its ReplicaSets and Pods, which the garbage collector deletes, do not count.
    pub fn weight(self, group: &str, resource: &str, weight: u32) -> Self {
        self.changed(|inner| inner.weights.set(group, resource, weight))
    }

    fn with(self, verbs: Verbs, budget: Budget) -> Self {
        self.changed(|inner| inner.rules.push(Rule { verbs, budget }))
    }

    /// Makes a guard with other settings, which has counted nothing.
    fn changed(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Inner {
            rules: self.0.rules.clone(),
            weights: self.0.weights.clone(),
            reset_after: self.0.reset_after,
            state: Mutex::default(),
        };
        change(&mut inner);
        Self(Arc::new(inner))
    }

    /// Returns whether it has tripped.
    #[must_use]
    pub fn state(&self) -> GuardState {
        self.locked(Counts::look)
    }

    /// Lets writes through again, with unused budgets. Reconcilers that were refused find out within a minute; a key
    /// that is enqueued is tried at once.
    pub fn reset(&self) {
        let was = self.0.state.lock().reset();
        if was {
            tracing::info!("a guard was reset");
        }
    }

    /// Runs a future whose writes guards neither count nor refuse: bookkeeping that must get through, such as taking
    /// off a finalizer. Plan mode holds for them all the same.
    ///
    /// # Cancel safety
    ///
    /// As for the future.
    pub async fn exempt<T>(future: impl Future<Output = T>) -> T {
        exempt(future).await
    }

    /// Counts a write that is about to be sent, or refuses it.
    pub(super) fn admit(&self, request: &Request<'_>) -> Ruling {
        let Inner {
            rules, reset_after, ..
        } = &*self.0;
        self.locked(|state, now| state.admit(now, rules, *reset_after, request))
    }

    /// Returns as how many objects each object of a write counts; `None` if that has to be said.
    pub(super) fn weight_of(&self, act: Act, write: &PendingWrite<'_>) -> Option<u32> {
        self.0.weights.of(act, write)
    }

    /// Does something with the state, after resetting it if it is time.
    fn locked<T>(&self, act: impl FnOnce(&mut Counts, Instant) -> T) -> T {
        let mut state = self.0.state.lock();
        // Under the lock, so that the times of writes are in order.
        let now = Instant::now();
        let is_over = state.reset_if_due(now);
        let done = act(&mut state, now);
        drop(state);
        if is_over {
            tracing::info!("a guard has reset itself");
        }
        done
    }

    /// Returns how much is remembered.
    pub(crate) fn remembered(&self) -> Remembered {
        let (windows, most) = self.0.state.lock().windows();
        // Each rule has a window of all kinds, or one of the kind that is written.
        let most = most + self.0.rules.len();
        Remembered::new("guard windows", windows, most)
    }

    pub(super) fn give_back(&self, ticket: &Ticket) {
        self.0.state.lock().give_back(ticket);
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("rules", &self.0.rules)
            .field("reset_after", &self.0.reset_after)
            .field("state", &self.state())
            .finish()
    }
}
