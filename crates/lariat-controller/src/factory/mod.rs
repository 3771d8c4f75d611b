//! The factory, which creates and runs one controller per kind.

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
use std::sync::{Arc, Weak};

use kube::Client;
use kube::api::DynamicObject;
use kube::core::ClusterResourceScope;
use lariat_cache::{CacheFactoryBuilder, MapperError, SharedCacheFactory, View};
use lariat_core::{Gvk, Remembered, ResourceKind, Scope};
use lariat_flight::FactoryStep;
use lariat_lease::{Leadership, LeaseError, Shards};
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

/// Creates one [`SharedController`] per kind, and runs them. Clones are the same factory.
///
/// A kind is identified by group, version and kind alone. A typed handle and a dynamic one of the same kind are the
/// same controller, with one watch, one cache and one queue.
///
/// Dropping the last clone aborts the controllers, even if handles of them are left. A handler that captures a clone of
/// the factory keeps it alive forever. [`stop`](Self::stop) processes the keys that are due first.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat_controller::{Context, HandlerResult, Outcome, SharedControllerFactory};
///
/// async fn log(cx: Context<Pod>) -> HandlerResult {
///     match cx.object()? {
///         Some(_) => println!("{} exists", cx.key()),
///         None => println!("{} does not exist", cx.key()),
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
    /// Returns a builder of a factory that uses `client`.
    pub fn builder(client: Client) -> FactoryBuilder {
        FactoryBuilder::new(client)
    }

    fn new(caches: CacheFactoryBuilder, options: Options) -> Self {
        let caches = caches.build();
        let is_first = caches.clients().set_gate(Arc::new(ByHandler));
        // If another gate had been set, no handler's gate would be asked.
        debug_assert!(is_first, "caches that were just built have no gate");
        Self {
            shared: Arc::new(Shared::new(caches, options)),
        }
    }

    /// Returns the controller of a Rust type's kind.
    ///
    /// The type says where the kind is served, so nothing is sent.
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

    /// Returns the controller of a kind, as dynamic objects.
    ///
    /// Nothing is sent now. The REST mapping is looked up when the factory starts.
    ///
    /// ```no_run
    /// use lariat_controller::SharedControllerFactory;
    /// use lariat_core::Gvk;
    ///
    /// # fn example(factory: &SharedControllerFactory) {
    /// let widgets = factory.for_kind(Gvk::new("example.com", "v1", "Widget"));
    /// println!("{}", widgets.gvk());
    /// # }
    /// ```
    #[must_use]
    pub fn for_kind(&self, gvk: impl Into<Gvk>) -> SharedController<DynamicObject> {
        SharedController::new(self.slot(gvk.into()))
    }

    /// Returns the controller of a kind whose resource is known, as dynamic objects.
    ///
    /// Nothing is sent.
    #[must_use]
    pub fn for_resource_kind(&self, resource: ResourceKind) -> SharedController<DynamicObject> {
        let slot = self.slot(resource.gvk().clone());
        slot.set_resource(resource);
        SharedController::new(slot)
    }

    /// Returns the controller of a resource, as dynamic objects.
    ///
    /// `group` is empty for the core group. The kind is looked up by discovery, now.
    ///
    /// # Errors
    ///
    /// The resource is not served, or the discovery request failed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only cancels the discovery request.
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

    /// Returns all listable and watchable kinds that a predicate selects.
    ///
    /// Kinds that are served later are included. Objects are dynamic.
    ///
    /// ```no_run
    /// use lariat_cache::Metadata;
    /// use lariat_controller::{Context, Outcome, RegisterError, SharedControllerFactory};
    ///
    /// # fn example(factory: &SharedControllerFactory) -> Result<(), RegisterError> {
    /// let custom = factory.for_all_kinds(|kind| kind.gvk().group().contains('.'));
    /// custom.view().register_handler("count", |cx: Context<Metadata>| async move {
    ///     println!("{} {}", cx.gvk(), cx.key());
    ///     Ok(Outcome::done())
    /// })?;
    /// # Ok(()) }
    /// ```
    ///
    /// The predicate is called for each kind after every discovery; see [`AllKinds`]. Nothing is opened until a handler
    /// is registered.
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

    /// Starts a [`Transaction`], which registers several handlers or none.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(Arc::clone(&self.shared))
    }

    /// Returns the factory of caches, for caches without handlers.
    ///
    /// It runs while this factory does. Dropping the last clone of this factory stops the caches too.
    #[must_use]
    pub fn caches(&self) -> &SharedCacheFactory {
        &self.shared.caches
    }

    /// Returns the client to use for writes.
    ///
    /// What is written through it is visible in the caches immediately, without waiting for the watch.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::api::{Api, PostParams};
    /// use lariat_controller::SharedControllerFactory;
    ///
    /// # async fn example(factory: &SharedControllerFactory, config: ConfigMap) -> Result<(), kube::Error> {
    /// let api: Api<ConfigMap> = Api::namespaced(factory.client(), "default");
    /// api.create(&PostParams::default(), &config).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime for the first time.
    #[must_use]
    pub fn client(&self) -> Client {
        self.shared.caches.clients().client()
    }

    /// Starts all controllers, and waits until their caches are synced.
    ///
    /// `start(5)` runs five workers for each kind that does not set [`workers`](crate::ControllerOptions::workers)
    /// itself. `start(None)` takes the number from the factory's default options, or else five.
    ///
    /// ```no_run
    /// use lariat_controller::{SharedControllerFactory, StartError};
    ///
    /// # async fn example(factory: &SharedControllerFactory) -> Result<(), StartError> {
    /// factory.start(5).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// A kind's handlers are called as soon as its own cache and those of its relations are synced, even if this method
    /// still waits for others. Kinds and handlers that are added later start by themselves. A stopped factory can be
    /// started again: keys that were left over, and objects that changed, are processed then. During a stop this waits
    /// for its end.
    ///
    /// The first start in a process installs a panic hook that records where a handler panicked, with a backtrace if
    /// `RUST_BACKTRACE` is set. If there was no custom hook before and errors are logged through `tracing`, a handler's
    /// panic is not printed on stderr as well. A custom hook is still called.
    ///
    /// # Errors
    ///
    /// The number of workers is zero, the factory runs already, a cache did not sync in time, or [`stop`](Self::stop)
    /// was called before. If caches did not sync, everything is stopped again, and the error names the kinds and their
    /// errors.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, what has started keeps running.
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
                // The sync error is the cause of whatever this stop leaves unfinished, so it alone is returned. A stop
                // by someone else has cancelled `stopped` already.
                let _ = self.stop_if(|| !stopped.is_cancelled()).await;
                Err(error.into())
            }
        }
    }

    /// Starts the controllers in use.
    ///
    /// Returns the token that is cancelled when this run ends, and one to cancel when the caches are synced.
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
        for slot in shared.slots() {
            if let Some(core) = slot.in_use() {
                running.spawn(&slot, &core);
            }
        }
        for follower in &state.followers {
            running.follow(follower);
        }
        if !shared.has_handlers(&state) && shared.caches.status().is_empty() {
            tracing::warn!(
                "the factory is started without handlers and does nothing until one is registered"
            );
        }
        state.running = Some(running);
        Ok((stopped, warm))
    }

    /// Starts, runs until `shutdown` resolves, and stops.
    ///
    /// A `shutdown` that resolves while the start waits for caches ends the start as well.
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
    /// As for [`start`](Self::start) and [`stop`](Self::stop), or the lease was lost. If `shutdown` resolves before the
    /// start has failed, the start's error is not returned.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, what has started keeps running; if `shutdown` had resolved, it stops without grace
    /// period.
    pub async fn run<T>(
        &self,
        workers: impl Into<Option<usize>>,
        shutdown: impl Future<Output = T>,
    ) -> Result<(), RunError> {
        notices::run_without_subscriber();
        let mut shutdown = pin!(shutdown);
        tokio::select! {
            biased;
            // Polled first, so that a signal handler is installed before any handler is called.
            _ = &mut shutdown => return Ok(self.stop().await?),
            started = self.start(workers) => started?,
        }
        self.run_until(shutdown).await
    }

    /// Runs until `shutdown` resolves or the lease is lost, and stops.
    ///
    /// `shutdown` is any future; its output is ignored.
    ///
    /// # Errors
    ///
    /// As for [`stop`](Self::stop), or the lease of the [leader election](FactoryBuilder::leader_election) is lost.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before `shutdown` resolves changes nothing; afterwards as for [`stop`](Self::stop).
    pub async fn run_until<T>(&self, shutdown: impl Future<Output = T>) -> Result<(), RunError> {
        let lost = tokio::select! {
            biased;
            _ = shutdown => None,
            why = self.lease_lost() => Some(why),
        };
        let stopped = self.stop().await;
        match lost {
            // Losing the lease implies dropped work, so that error is not returned.
            Some(why) => Err(RunError::Lost(why)),
            None => Ok(stopped?),
        }
    }

    /// Returns the leadership of this process; `None` without an election.
    ///
    /// See [`leader_election`](FactoryBuilder::leader_election).
    #[must_use]
    pub fn leadership(&self) -> Option<Leadership> {
        self.shared.options.leadership()
    }

    /// Returns the shards of this process; `None` without a ring.
    ///
    /// See [`sharding`](FactoryBuilder::sharding).
    #[must_use]
    pub fn shards(&self) -> Option<Shards> {
        self.shared.options.shards()
    }

    /// Waits until the lease of this run is lost; returns the reason.
    ///
    /// Without an election, or if the factory does not run, it never resolves.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: once the lease is lost, every call resolves immediately until the factory is stopped.
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

    /// Stops the factory: ends the watches, drains the queues, joins all tasks.
    ///
    /// Keys that are due when the stop begins are processed. Retries, delayed keys, and keys that are enqueued from
    /// then on are kept for the next start. A second stop in the meantime waits for the first. Stopping a factory that
    /// does not run does nothing.
    ///
    /// The number of remaining keys is logged when the stop begins, and the calls it waits for every few seconds.
    ///
    /// # Errors
    ///
    /// Keys that were due were not processed within the grace period. They are kept for the next start too.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the stop continues without grace period: running calls are dropped.
    pub async fn stop(&self) -> Result<(), StopError> {
        self.stop_if(|| true).await
    }

    /// Stops the run, if `wanted` still returns true once no other start or stop is in progress.
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
        // Includes what handlers did after the caches had stopped.
        self.shared.caches.flush_flight().await;
        stopped
    }

    /// Returns state and counters of every controller in use, sorted by kind.
    #[must_use]
    pub fn status(&self) -> Vec<ControllerStatus> {
        let slots = self.shared.slots();
        slots
            .iter()
            .filter_map(|slot| Some(slot.in_use()?.status()))
            .collect()
    }
}

impl SharedControllerFactory {
    /// Returns the size and bound of every internal structure, by kind.
    ///
    /// Objects in the caches are not included. Use it for checks, and for gauges of long-running programs. Nothing
    /// grows without bound.
    ///
    /// Locks are held briefly, and the cost does not grow with the number of objects or keys. To what [the
    /// caches](SharedCacheFactory::remembered) report it adds:
    ///
    /// | `what` | keyed by | bound |
    /// |---|---|---|
    /// | `queue keys`, `queue tickets`, `queue deadlines`, `queue hand-outs` | object key | the keys that are due, delayed or being processed: [`QueueMemory`](lariat_queue::QueueMemory) |
    /// | `runs` | run | [`ControllerOptions::history`](crate::ControllerOptions::history) |
    /// | `older runs` | run, at most 4 of a key | 4,096 |
    /// | `failing keys` | handler and object key | 4,096 for each handler |
    /// | `suspects` | object key | 1,024; see [`Sentinel`](crate::Sentinel) |
    /// | `keys in line` | handler and object key | keys that were enqueued while the handler was at its limit; zero while it is below |
    /// | `kept places` | handler and object key | the [concurrency](crate::HandlerOptions::concurrency) of the handlers |
    /// | `relations` | relation | relations that have not [ended](crate::Related::end) |
    /// | `owners set aside` | object key | for each relation 1,024, or twice the owners that objects name |
    /// | `controllers` | kind | 64, or twice the number of kinds with handlers, relations or handles |
    ///
    /// All entries of a kind are dropped with its last handler, except those of its cache. Some structures are bounded
    /// but not listed, because they travel with a key: deletions that a handler has not handled (32 per name), the
    /// causes of a run, the failures of a key's lanes, and what a chain of runs wrote (4,096 objects and fields).
    #[must_use]
    pub fn remembered(&self) -> Vec<Remembered> {
        let state = self.shared.state.lock();
        let slots = self.shared.slots();
        let (controllers, most) = (slots.len(), state.most_slots());
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
