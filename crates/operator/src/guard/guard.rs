//! A guard: its budgets, its weights and its counts.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::PendingWrite;
use lariat_core::TableSize;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::announced::Announced;
use super::budget::Budget;
use super::rules::{Act, Rule, Verbs, Weights};
use super::state::{Counts, GuardState, Request, Ruling, Ticket};
use crate::refusal::exempt;

/// A circuit breaker for writes: limits how many objects a handler writes.
///
/// It limits the damage of a bug, such as a selector that matches everything or a cache without objects. Once a
/// [`Budget`](crate::Budget) is exceeded, the guard trips: it refuses further writes until it is [reset](Self::reset),
/// or [resets itself](Self::reset_after).
///
/// A refused write is not sent, and fails with a [`GuardError`](crate::GuardError). A reconciler that returns this
/// error is called again every minute, or when the guard resets itself, any number of times: these failures do not
/// count for [`max_retries`](lariat_controller::HandlerOptions::max_retries). For other handlers, and for reconcilers
/// with an [`on_error`](crate::Reconciler::on_error), it is a failure like any other. A trip is logged once, as an
/// error.
///
/// Clones share the budgets and the counts. Give clones to several reconcilers to share the budgets, and keep one to
/// read the [`state`](Self::state) and to [`reset`](Self::reset) it. A builder method returns a new guard, whose counts
/// are separate.
///
/// - **Which writes.** All writes through the clients of a reconciler's calls, on any task and also after the call, and
///   through other clients of the factory on the task of the call: a [`CachedApi`](crate::CachedApi) that the reconciler
///   captured is not counted on a task that it spawns, unless it is [bound to the call](crate::CachedApi::within).
///   Writes of `status` are neither counted nor refused, so
///   that a handler can report problems. Neither are [exempt](Self::exempt) writes and dry runs.
/// - **Deletions.** These are `delete`, `deletecollection` and evictions. A collection counts as the number of its
///   cached objects, and at least as one. If [the cache does not know the
///   number](lariat_cache::PendingWrite::objects), the deletion is refused. So is the deletion of a Namespace or a
///   CustomResourceDefinition, unless it has a [weight](Self::weight). Objects that the garbage collector deletes
///   with their owner do not count.
/// - **When it counts.** A write is counted before it is sent, so that concurrent workers cannot exceed a budget
///   together. The count is reverted if the API server refused the write or was not reached, or if nothing changed,
///   which the resource version in the answer shows. A write with an unknown result stays counted: without an
///   answer, with a 5xx, or of a dropped call.
/// - **Replacements.** Writes that belong together, as the deletion and the creation of
///   [`Immutable::Replace`](crate::Immutable::Replace) do, are counted together before the first one is sent. So a guard
///   does not trip between them, unless it is reset in between, or the deletion takes more than an hour.
/// - **Restarts.** The counts are in memory. A new process starts with unused budgets, and not tripped.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::operator::{Budget, Guard};
/// use lariat::{HandlerResult, Operator, Outcome, Reconcile, SharedControllerFactory};
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

/// The settings of a guard, which do not change, and its counts.
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
    /// Server-side apply may create too, but counts as a [change](Self::changes).
    pub fn creates(self, budget: Budget) -> Self {
        self.with(Verbs::Creates, budget)
    }

    /// Adds a budget for updates, patches and applies.
    ///
    /// Creations of subresources, such as bindings, count as well.
    pub fn changes(self, budget: Budget) -> Self {
        self.with(Verbs::Changes, budget)
    }

    /// Adds a budget for all writes together, including deletions.
    pub fn writes(self, budget: Budget) -> Self {
        self.with(Verbs::All, budget)
    }

    /// Makes a tripped guard reset itself after this time (default: never).
    ///
    /// Zero means never, too. After the reset, a faulty handler continues at the rate that the budgets allow.
    pub fn reset_after(self, pause: Duration) -> Self {
        self.changed(|inner| inner.reset_after = Some(pause).filter(|pause| !pause.is_zero()))
    }

    /// Sets how many objects the deletion of an object of a kind counts as (default 1).
    ///
    /// Zero means not to count it. The kind is given as in an RBAC rule: its group, which is empty for core kinds, and
    /// its plural.
    ///
    /// The deletion of a Namespace or a CustomResourceDefinition deletes everything in it, so a budget that counts it
    /// as one object would protect nothing. A guard with a budget for deletions refuses it unless the kind has a
    /// weight. For other owners of objects a weight is optional: by default the deletion of a Deployment counts as one,
    /// although the garbage collector deletes its ReplicaSets and Pods too.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::operator::{Budget, Guard};
    ///
    /// let guard = Guard::new()
    ///     .deletes(Budget::rate(100, Duration::from_secs(60)))
    ///     .weight("", "namespaces", 50)
    ///     .weight("apps", "deployments", 10);
    /// assert_eq!(guard.budgets(), ["budget of deletions, 100 per 60s"]);
    /// ```
    pub fn weight(self, group: &str, resource: &str, weight: u32) -> Self {
        self.changed(|inner| inner.weights.set(group, resource, weight))
    }

    fn with(self, verbs: Verbs, budget: Budget) -> Self {
        self.changed(|inner| inner.rules.push(Rule { verbs, budget }))
    }

    /// Returns a guard with changed settings and no counts.
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

    /// Returns whether the guard has tripped, and why.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::operator::{Budget, Guard};
    ///
    /// let guard = Guard::new().writes(Budget::rate(500, Duration::from_secs(60)));
    /// assert!(guard.state().trip().is_none());
    /// ```
    #[must_use]
    pub fn state(&self) -> GuardState {
        self.locked(Counts::state)
    }

    /// Returns whether two guards share their counts, because they are clones.
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
    /// Reconcilers whose writes were refused are called again within a minute. A key that is enqueued is called
    /// immediately.
    pub fn reset(&self) {
        let was = self.0.state.lock().reset();
        if was {
            tracing::info!("a guard was reset");
        }
    }

    /// Runs a future whose writes guards neither count nor refuse.
    ///
    /// Use it for writes that must not be refused, such as the removal of a finalizer. In an operator that only plans,
    /// these writes are dry runs all the same.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::api::DeleteParams;
    /// use lariat::operator::{CachedApi, Guard};
    ///
    /// # async fn example(configs: CachedApi<ConfigMap>) -> Result<(), Box<dyn std::error::Error>> {
    /// let key = "shop/lock".parse()?;
    /// Guard::exempt(configs.delete(&key, &DeleteParams::default())).await?;
    /// # Ok(()) }
    /// ```
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

    /// Returns the weight of each object of a write; `None` if it must be set first.
    pub(super) fn weight_of(&self, act: Act, write: &PendingWrite<'_>) -> Option<u32> {
        self.0.weights.of(act, write)
    }

    /// Locks the counts, after resetting them if that is due.
    fn locked<T>(&self, act: impl FnOnce(&mut Counts, Instant) -> T) -> T {
        let mut state = self.0.state.lock();
        // The time is read under the lock, so that the times of writes are in order.
        let now = Instant::now();
        let is_over = state.reset_if_due(now);
        let done = act(&mut state, now);
        drop(state);
        if is_over {
            tracing::info!("a guard has reset itself");
        }
        done
    }

    /// Returns the number of counted windows, and its bound.
    pub(crate) fn table_sizes(&self) -> TableSize {
        let (windows, most) = self.0.state.lock().windows();
        // A rule has one window, or one for each kind that is written.
        let most = most + self.0.rules.len();
        TableSize::new("guard windows", windows, most)
    }

    pub(super) fn give_back(&self, ticket: &Ticket) {
        self.0.state.lock().give_back(ticket);
    }

    /// Forgets the announcement of a write that has succeeded.
    pub(super) fn use_up(&self, announced: &Announced) {
        self.0.state.lock().use_up(announced);
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
