//! A guard: its budgets and its counts.

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

/// Limits what a handler writes.
///
/// Once a budget is exceeded, the guard trips and refuses further writes.
///
/// It limits the damage of a bug: a selector that matches everything, a cache without objects. A refused write is not
/// sent, and fails with a [`GuardError`](crate::GuardError). A reconciler that returns this error is called again every
/// minute, or when the guard [resets itself](Self::reset_after), any number of times: these failures do not count for
/// [`max_retries`](lariat_controller::HandlerOptions::max_retries). For other handlers, and for reconcilers with an
/// [`on_error`](crate::Reconciler::on_error), it is a failure like any other. The trip is logged once, as an error.
///
/// Clones are the same guard with the same budgets. Give clones to several reconcilers to share the budgets; keep one
/// to read the [`state`](Self::state) and to [`reset`](Self::reset) it. A builder method returns a new guard, whose
/// counts are separate.
///
/// - A guard sees the writes of a reconciler's calls through any client of the factory; see
///   [`Gate`](lariat_controller::Gate) for the exceptions.
/// - Deletions are `delete`, `deletecollection` and evictions. A collection counts as the number of its cached objects,
///   and at least as one; if [the cache does not know it](lariat_cache::PendingWrite::objects), the deletion is
///   refused. So is the deletion of a Namespace or a CustomResourceDefinition, unless it has a [weight](Self::weight).
///   What the garbage collector deletes with an owner does not count.
/// - Writes of `status` are neither counted nor refused, so that a handler can report problems. The same holds for
///   [exempt](Self::exempt) writes and dry runs.
/// - A write is counted before it is sent, so that concurrent workers cannot exceed a budget. The count is reverted if
///   the API server refused the write, was not reached, or nothing changed: the answer to an update or patch has the
///   cached resource version. A write with an unknown result stays counted: without an answer, with a 5xx, or of a
///   dropped call.
///
/// The counts are in memory: a new process starts with unused budgets, and not tripped.
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
    /// Creates a guard without budgets, which refuses nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a budget for deletions.
    pub fn deletes(self, budget: Budget) -> Self {
        self.with(Verbs::Deletes, budget)
    }

    /// Adds a budget for creations.
    ///
    /// Server-side apply, which may create, is a [change](Self::changes).
    pub fn creates(self, budget: Budget) -> Self {
        self.with(Verbs::Creates, budget)
    }

    /// Adds a budget for updates and patches.
    ///
    /// Creations of subresources (bindings, calls into pods) count as well.
    pub fn changes(self, budget: Budget) -> Self {
        self.with(Verbs::Changes, budget)
    }

    /// Adds a budget for all writes together, including deletions.
    pub fn writes(self, budget: Budget) -> Self {
        self.with(Verbs::All, budget)
    }

    /// Makes a tripped guard reset itself after this time (default and zero: never).
    ///
    /// A faulty handler then continues at the rate that the budgets allow.
    pub fn reset_after(self, pause: Duration) -> Self {
        self.changed(|inner| inner.reset_after = Some(pause).filter(|pause| !pause.is_zero()))
    }

    /// Sets how many objects a deletion of an object of a kind counts as (default 1).
    ///
    /// Zero means not to count it. The kind is given as in a rule of a role: by its group, empty for core kinds, and
    /// its plural.
    ///
    /// The deletion of a Namespace or a CustomResourceDefinition deletes everything in it, so a budget that counts it
    /// as one object protects nothing. A guard with a budget for deletions refuses them, unless they have a weight. For
    /// other owners of objects a weight is optional: without one, a Deployment counts as one, and its ReplicaSets and
    /// Pods, which the garbage collector deletes, do not count.
    pub fn weight(self, group: &str, resource: &str, weight: u32) -> Self {
        self.changed(|inner| inner.weights.set(group, resource, weight))
    }

    fn with(self, verbs: Verbs, budget: Budget) -> Self {
        self.changed(|inner| inner.rules.push(Rule { verbs, budget }))
    }

    /// Returns a guard with other settings and no counts.
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

    /// Returns whether the guard has tripped, and the trip.
    #[must_use]
    pub fn state(&self) -> GuardState {
        self.locked(Counts::look)
    }

    /// Returns whether two guards are the same: clones of each other.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the budgets as texts, such as `budget of deletions, 10 per 60s`.
    #[must_use]
    pub fn budgets(&self) -> Vec<String> {
        self.0.rules.iter().map(ToString::to_string).collect()
    }

    /// Resets the guard: its budgets are unused, and writes are admitted again.
    ///
    /// Reconcilers whose writes were refused are called again within a minute; a key that is enqueued is tried
    /// immediately.
    pub fn reset(&self) {
        let was = self.0.state.lock().reset();
        if was {
            tracing::info!("a guard was reset");
        }
    }

    /// Runs a future whose writes guards neither count nor refuse.
    ///
    /// Use it for writes that must not be refused, such as the removal of a finalizer. In an operator that only plans
    /// they are dry runs all the same.
    ///
    /// # Cancel safety
    ///
    /// As for the given future.
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

    /// Returns how many objects each object of a write counts as; `None` if it needs a weight.
    pub(super) fn weight_of(&self, act: Act, write: &PendingWrite<'_>) -> Option<u32> {
        self.0.weights.of(act, write)
    }

    /// Locks the counts, after resetting them if that is due.
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

    /// Returns the size and bound.
    pub(crate) fn remembered(&self) -> Remembered {
        let (windows, most) = self.0.state.lock().windows();
        // A rule has one window, or one for each kind that is written.
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
