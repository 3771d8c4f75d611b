//! The factory: one controller per kind.

mod builder;
mod duplicates;
mod running;
mod shared;
mod stopping;
mod transaction;

use std::any::TypeId;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use kube::Client;
use kube::api::DynamicObject;
use kube::core::ClusterResourceScope;
use lariat_cache::{CacheFactoryBuilder, MapperError, SharedCacheFactory, View};
use lariat_core::{Gvk, Remembered, ResourceKind, Scope};
use lariat_flight::FactoryStep;
use lariat_lease::{Leadership, LeaseError, Shards};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::controller::{Kinds, SharedController, Slot};
use crate::current::ByHandler;
use crate::error::{RunError, StartError, StopError};
use crate::many::{AllKinds, Follows};
use crate::status::ControllerStatus;
use crate::{notices, panics};
use running::Running;
pub(crate) use shared::Shared;

pub use builder::FactoryBuilder;
use builder::{Election, Options};
pub use transaction::Transaction;

/// Gives out one [`SharedController`] per kind, and runs them; a clone is the same factory.
///
/// Kinds are distinguished by group, version and kind alone: a typed handle and a dynamic one of the same
/// kind are the same controller, with one watch, one cache and one queue.
///
/// Dropping the last clone drops what runs, also while handles of controllers are left; a handler that
/// captures a clone of the factory keeps it from ever being the last. [`stop`](Self::stop) finishes what
/// is due first.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat_controller::{Context, HandlerResult, Outcome, SharedControllerFactory};
///
/// async fn log(cx: Context<Pod>) -> HandlerResult {
///     match cx.object()? {
///         Some(_) => println!("{} exists", cx.key()),
///         None => println!("{} is gone", cx.key()),
///     }
///     Ok(Outcome::done())
/// }
///
/// # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let factory = SharedControllerFactory::builder(client).build();
/// factory.for_object::<Pod>().register_handler("log", log)?;
/// factory.start(5).await?;
/// factory.run_until(std::future::pending::<()>()).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SharedControllerFactory {
    pub(crate) shared: Arc<Shared>,
}

impl SharedControllerFactory {
    /// Begins to configure a factory over a client.
    pub fn builder(client: Client) -> FactoryBuilder {
        FactoryBuilder::new(client)
    }

    fn new(caches: CacheFactoryBuilder, options: Options) -> Self {
        let caches = caches.build();
        let is_first = caches.clients().set_gate(Arc::new(ByHandler));
        // Otherwise no handler's gate would be asked.
        debug_assert!(is_first, "caches that were just made have no gate");
        Self {
            shared: Arc::new(Shared {
                caches,
                options,
                state: Mutex::default(),
                lifecycle: tokio::sync::Mutex::default(),
                registering: Mutex::default(),
                runs: Arc::new(AtomicU64::new(1)),
            }),
        }
    }

    /// Returns the controller of a type's kind. The type says where it is served: nothing is sent.
    #[must_use]
    pub fn for_object<K>(&self) -> SharedController<K>
    where
        K: kube::Resource<DynamicType = ()> + View,
        K::Scope: 'static,
    {
        let gvk = Gvk::new(&K::group(&()), &K::version(&()), &K::kind(&()));
        let is_cluster = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
        let scope = if is_cluster {
            Scope::Cluster
        } else {
            Scope::Namespaced
        };
        self.for_resource_kind(ResourceKind::new(gvk, &K::plural(&()), scope))
            .view()
    }

    /// Returns the controller of a kind, as dynamic objects. Where it is served, and whether it is, is
    /// asked when the factory starts.
    #[must_use]
    pub fn for_kind(&self, gvk: impl Into<Gvk>) -> SharedController<DynamicObject> {
        SharedController::new(self.slot(gvk.into()))
    }

    /// Returns the controller of a kind whose resource is known, as dynamic objects. Nothing is sent.
    #[must_use]
    pub fn for_resource_kind(&self, resource: ResourceKind) -> SharedController<DynamicObject> {
        let slot = self.slot(resource.gvk().clone());
        slot.set_resource(resource);
        SharedController::new(slot)
    }

    /// Returns the controller of a resource, given its group (empty for core), version and plural, as
    /// dynamic objects. The kind is asked of the API server, now.
    ///
    /// # Errors
    ///
    /// The resource is not served, or discovery does not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing but the request under way.
    pub async fn for_resource(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Result<SharedController<DynamicObject>, MapperError> {
        let mapper = self.shared.caches.clients().mapper();
        Ok(self.for_resource_kind(mapper.resource(group, version, plural).await?))
    }

    fn slot(&self, gvk: Gvk) -> Arc<Slot> {
        Arc::clone(&self.shared).slot(gvk)
    }

    /// Returns all kinds the API server serves that can be listed and watched and that a function wants, as
    /// dynamic objects: those there are and those that come.
    ///
    /// The function is asked when kinds come, and again after each look at what is served. Nothing is opened
    /// until a handler is registered.
    #[must_use]
    pub fn for_all_kinds(
        &self,
        wanted: impl Fn(&ResourceKind) -> bool + Send + Sync + 'static,
    ) -> AllKinds<DynamicObject> {
        {
            let factory: Weak<dyn Follows> = Arc::<Shared>::downgrade(&self.shared);
            AllKinds::new(factory, Arc::new(wanted))
        }
    }

    /// Begins to register many handlers at once, of whatever kinds; see [`Transaction`].
    pub fn transaction(&self) -> Transaction {
        Transaction::new(Arc::clone(&self.shared))
    }

    /// Returns the factory of caches, for caches without handlers. It runs as long as this factory
    /// does: dropping the last clone of this one stops the caches too.
    #[must_use]
    pub fn caches(&self) -> &SharedCacheFactory {
        &self.shared.caches
    }

    /// Returns the client to write through.
    ///
    /// Caches and handlers see at once what is written through it, without waiting for a watch.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, if it is asked for the first time.
    #[must_use]
    pub fn client(&self) -> Client {
        self.shared.caches.clients().client()
    }

    /// Starts every controller in use, with this many workers each, and waits for their caches.
    ///
    /// `start(5)` gives five workers to each kind that has no number of its own
    /// ([`ControllerOptions::workers`](crate::ControllerOptions::workers)); `start(None)` takes the number of
    /// the factory's default options, and five if they have none.
    ///
    /// Handlers are called from the moment their own kind's cache is filled. Kinds and handlers that
    /// come later start by themselves. A factory that was stopped can be started again: what changed
    /// meanwhile, and what was left, is handled. During a stop this waits for its end.
    ///
    /// The first start in a process adds to the panic hook, so that a handler that panics leaves the place for the log,
    /// and if `RUST_BACKTRACE` is set a backtrace. Where no panic hook was set before and errors are logged through
    /// `tracing`, the panic of a handler is not printed on stderr besides; a hook of the program's own is called as
    /// ever.
    ///
    /// # Errors
    ///
    /// `workers` or an option for them is 0, the factory runs already, some cache was not filled in time, or
    /// [`stop`](Self::stop) was called before all were. When caches are missing, everything has been
    /// stopped again, and the error names the kinds and what went wrong.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, what was started by then goes on running.
    pub async fn start(&self, workers: impl Into<Option<usize>>) -> Result<(), StartError> {
        let workers = workers.into();
        self.shared.options.check_workers(workers)?;
        if let Some(Election::Invalid(error)) = &self.shared.options.election {
            return Err(error.clone().into());
        }
        panics::note();
        let (stopped, warm) = self.set_running(workers).await?;
        let caches = &self.shared.caches;
        let filled = caches.wait_for_sync(self.shared.options.sync_timeout);
        match stopped.run_until_cancelled(filled).await {
            None => Err(StartError::Stopped),
            Some(Ok(())) => {
                warm.cancel();
                duplicates::warn_of_any(&self.shared);
                Ok(())
            }
            Some(Err(error)) => {
                // What was cut short by this is reported by the error that caused it.
                let _ = self.stop_if(|| !stopped.is_cancelled()).await;
                Err(error.into())
            }
        }
    }

    /// Starts what is in use; returns the token that is cancelled when this run ends, and the one to cancel when the caches
    /// are filled.
    async fn set_running(
        &self,
        workers: Option<usize>,
    ) -> Result<(CancellationToken, CancellationToken), StartError> {
        let shared = &self.shared;
        let _alone = shared.lifecycle.lock().await;
        let mut state = shared.state.lock();
        if state.running.is_some() {
            return Err(StartError::AlreadyStarted);
        }
        let mut running = Running::new((workers, shared.options.default_workers()));
        let stopped = running.stopping.drain.clone();
        let default = shared.options.default_workers();
        shared.record(FactoryStep::Started, workers.or(default));
        let warm = CancellationToken::new();
        if let Some(election) = &shared.options.election {
            running.take_part(election, warm.clone());
        }
        shared.caches.start();
        for slot in state.slots.values() {
            if let Some(core) = slot.in_use() {
                running.spawn(slot, &core);
            }
        }
        for follower in &state.followers {
            running.follow(follower);
        }
        if !state.has_handlers() && shared.caches.status().is_empty() {
            tracing::warn!(
                "the factory is started without handlers: nothing happens until some are registered"
            );
        }
        state.running = Some(running);
        Ok((stopped, warm))
    }

    /// Starts, runs until a shutdown signal, whatever the future resolves to, and stops; the signal
    /// ends a start that waits for its caches too.
    ///
    /// ```no_run
    /// # async fn example(factory: lariat_controller::SharedControllerFactory)
    /// # -> Result<(), lariat_controller::RunError> {
    /// factory.run(5, async { tokio::signal::ctrl_c().await.ok() }).await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start) and [`stop`](Self::stop). A signal that comes before the start has
    /// failed ends it without its error.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, what was started by then goes on running, or stops without grace if
    /// the signal had come.
    pub async fn run<T>(
        &self,
        workers: impl Into<Option<usize>>,
        shutdown: impl Future<Output = T>,
    ) -> Result<(), RunError> {
        notices::run_without_subscriber();
        let mut shutdown = pin!(shutdown);
        tokio::select! {
            biased;
            // First, so that a signal has who waits for it before a handler does anything.
            _ = &mut shutdown => return Ok(self.stop().await?),
            started = self.start(workers) => started?,
        }
        self.run_until(shutdown).await
    }

    /// Waits for a shutdown signal or the loss of the lease, and stops.
    ///
    /// The signal is any future; what it resolves to is ignored.
    ///
    /// # Errors
    ///
    /// As for [`stop`](Self::stop), or the lease of the [leader election](FactoryBuilder::leader_election) is lost.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before the signal changes nothing; afterwards as for [`stop`](Self::stop).
    pub async fn run_until<T>(&self, shutdown: impl Future<Output = T>) -> Result<(), RunError> {
        let lost = tokio::select! {
            biased;
            _ = shutdown => None,
            why = self.lease_lost() => Some(why),
        };
        let stopped = self.stop().await;
        match lost {
            // Work that was cut short is what the loss means.
            Some(why) => Err(RunError::Lost(why)),
            None => Ok(stopped?),
        }
    }

    /// Returns the leadership of this process; none without an election.
    ///
    /// See [`leader_election`](FactoryBuilder::leader_election).
    #[must_use]
    pub fn leadership(&self) -> Option<Leadership> {
        self.shared.options.leadership()
    }

    /// Returns the share of this process; none without a ring.
    ///
    /// See [`sharding`](FactoryBuilder::sharding).
    #[must_use]
    pub fn shards(&self) -> Option<Shards> {
        self.shared.options.shards()
    }

    /// Waits until the lease of this run is lost, and returns why.
    ///
    /// Without an election it never resolves.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: it resolves at once from then on, until the factory is stopped.
    pub async fn lease_lost(&self) -> LeaseError {
        let lost = self
            .shared
            .state
            .lock()
            .running
            .as_ref()
            .and_then(Running::lost);
        match lost {
            Some(lost) => lost.why().await,
            None => std::future::pending().await,
        }
    }

    /// Stops: takes no changes in any more, lets handlers finish what is due, and waits for all tasks.
    ///
    /// What is due is what the handlers had to do when the stop began. What they make of it, such as
    /// retries, what is delayed, and what is enqueued from now on, is kept for the next start. A second
    /// stop meanwhile waits for the first. Stopping a factory that does not run does nothing.
    ///
    /// How many keys are left is logged at the beginning, and every few seconds which calls the stop waits for.
    ///
    /// # Errors
    ///
    /// What was due could not be finished within the grace period; it is kept for the next start too.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the stop goes on without grace: calls under way are dropped.
    pub async fn stop(&self) -> Result<(), StopError> {
        self.stop_if(|| true).await
    }

    /// Stops what runs, if once the lifecycle is at rest there is still reason to.
    async fn stop_if(&self, wanted: impl FnOnce() -> bool) -> Result<(), StopError> {
        let _alone = self.shared.lifecycle.lock().await;
        if !wanted() {
            return Ok(());
        }
        let running = self.shared.state.lock().running.take();
        let Some(running) = running else {
            return Ok(());
        };
        self.shared.record(FactoryStep::Stopping, None);
        running.begin_stop();
        self.shared.caches.stop().await;
        let stopped = running.stop(self.shared.options.grace_period).await;
        self.shared.record(FactoryStep::Stopped, None);
        // What handlers did since the caches stopped.
        self.shared.caches.flush_flight().await;
        stopped
    }

    /// Returns state and totals of every controller in use, by kind.
    #[must_use]
    pub fn status(&self) -> Vec<ControllerStatus> {
        let slots: Vec<Arc<Slot>> = self.shared.state.lock().slots.values().cloned().collect();
        slots
            .iter()
            .filter_map(|slot| Some(slot.in_use()?.status()))
            .collect()
    }
}

impl SharedControllerFactory {
    /// Returns how much is remembered beyond the objects, by structure and kind, with the bound of each: for checks, and
    /// for gauges of programs that run for long. Nothing grows without bound in a program that never stops.
    ///
    /// Locks are held for moments, and the cost does not grow with the number of objects or keys. To what
    /// [the caches](SharedCacheFactory::remembered) remember it adds:
    ///
    /// | `what` | keyed by | bound |
    /// |---|---|---|
    /// | `queue keys`, `queue tickets`, `queue deadlines`, `queue processing` | object key | by the keys that are due, delayed or with a worker: [`QueueMemory`](lariat_queue::QueueMemory) |
    /// | `runs` | run | [`ControllerOptions::history`](crate::ControllerOptions::history) |
    /// | `older runs` | run, at most 4 of a key | 4,096 |
    /// | `failing keys` | handler and object key | 4,096 for each handler |
    /// | `suspects` | object key | 1,024; see [`Sentinel`](crate::Sentinel) |
    /// | `keys in line` | handler and object key | keys that were enqueued while as many calls of the handler were under way as it allows; otherwise none |
    /// | `kept places` | handler and object key | the [concurrency](crate::HandlerOptions::concurrency) of the handlers |
    /// | `relations` | relation | relations that were not [ended](crate::Related::end) |
    /// | `owners set aside` | object key | for each relation 1,024, or twice the owners that objects name |
    /// | `controllers` | kind | 64, or twice the kinds with handlers, relations or handles |
    ///
    /// All of a kind go with its last handler, but for what the cache has. Bounded without being listed, for they travel
    /// with a key and leave with it: the deletions that a handler has not handled (32 under one name), the causes of a run, the
    /// failures of a key's lanes, and what a chain of runs wrote (4,096 objects and fields).
    #[must_use]
    pub fn remembered(&self) -> Vec<Remembered> {
        let state = self.shared.state.lock();
        let (controllers, most) = (state.slots.len(), state.most_slots());
        let slots: Vec<Arc<Slot>> = state.slots.values().cloned().collect();
        drop(state);
        let mut all = self.shared.caches.remembered();
        slots.iter().for_each(|slot| slot.remembered(&mut all));
        all.push(Remembered::new("controllers", controllers, most));
        all
    }
}

impl fmt::Debug for SharedControllerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedControllerFactory")
            .field("status", &self.status())
            .finish()
    }
}
