//! The factory: one controller per kind.

mod builder;
mod running;

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use kube::Client;
use kube::api::DynamicObject;
use kube::core::ClusterResourceScope;
use lariat_cache::{MapperError, SharedCacheFactory, View};
use lariat_core::{Gvk, ResourceKind, Scope};
use parking_lot::Mutex;

use crate::controller::{ControllerCore, SharedController, Slot};
use crate::error::{StartError, StopError};
use crate::status::ControllerStatus;
use running::Running;

pub use builder::FactoryBuilder;
use builder::Options;

/// Gives out one [`SharedController`] per kind, and runs them; a clone is the same factory.
///
/// Kinds are told apart by group, version and kind alone: a typed handle and a dynamic one of the same
/// kind are the same controller, with one watch, one cache and one queue.
///
/// Dropping the last clone drops what runs. [`stop`](Self::stop) finishes what is due first.
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
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    caches: SharedCacheFactory,
    options: Options,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    slots: BTreeMap<Gvk, Arc<Slot>>,
    running: Option<Running>,
}

impl SharedControllerFactory {
    /// Begins to configure a factory over a client.
    pub fn builder(client: Client) -> FactoryBuilder {
        FactoryBuilder::new(client)
    }

    fn new(client: Client, options: Options) -> Self {
        Self {
            shared: Arc::new(Shared {
                caches: SharedCacheFactory::new(client, options.missing_kind),
                options,
                state: Mutex::default(),
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
        let shared = &self.shared;
        let mut state = shared.state.lock();
        let slot = state.slots.entry(gvk).or_insert_with_key(|gvk| {
            let caches = shared.caches.clone();
            let timeout = shared.options.handler_timeout;
            Arc::new(Slot::new(
                gvk.clone(),
                caches,
                timeout,
                Arc::downgrade(shared),
            ))
        });
        Arc::clone(slot)
    }

    /// Returns the factory of caches, for caches without handlers.
    #[must_use]
    pub fn caches(&self) -> &SharedCacheFactory {
        &self.shared.caches
    }

    /// Returns the client everything goes through.
    #[must_use]
    pub fn client(&self) -> &Client {
        self.shared.caches.clients().client()
    }

    /// Starts every controller in use, with this many workers each, and waits for their caches.
    ///
    /// Handlers are called from the moment their own kind's cache is filled. Kinds and handlers that
    /// come later start by themselves. A factory that was stopped can be started again: what changed
    /// meanwhile, and what was left, is handled.
    ///
    /// # Errors
    ///
    /// `workers` is 0, the factory runs already, or some cache was not filled in time; then everything
    /// has been stopped again, and the error names the kinds and what went wrong.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, what was started goes on running.
    pub async fn start(&self, workers: usize) -> Result<(), StartError> {
        if workers == 0 {
            return Err(StartError::NoWorkers);
        }
        let shared = &self.shared;
        {
            let mut state = shared.state.lock();
            if state.running.is_some() {
                return Err(StartError::AlreadyStarted);
            }
            let mut running = Running::new(workers);
            shared.caches.start();
            for core in state.slots.values().filter_map(|slot| slot.in_use()) {
                running.spawn(core);
            }
            state.running = Some(running);
        }
        if let Err(error) = shared
            .caches
            .wait_for_sync(shared.options.sync_timeout)
            .await
        {
            // What was cut short by this is told by the error that caused it.
            let _ = self.stop().await;
            return Err(error.into());
        }
        Ok(())
    }

    /// Waits for a shutdown signal, whatever the future resolves to, and stops.
    ///
    /// # Errors
    ///
    /// As for [`stop`](Self::stop).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before the signal changes nothing; afterwards as for [`stop`](Self::stop).
    pub async fn run_until<T>(&self, shutdown: impl Future<Output = T>) -> Result<(), StopError> {
        let _ = shutdown.await;
        self.stop().await
    }

    /// Stops: takes no changes in any more, lets handlers finish what is due, and waits for all tasks.
    ///
    /// What is delayed, and what is enqueued from now on, is kept for the next start. Stopping a factory
    /// that does not run does nothing.
    ///
    /// # Errors
    ///
    /// What was due could not be finished within the grace period; it is kept for the next start too.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the stop goes on without grace: calls under way are dropped.
    pub async fn stop(&self) -> Result<(), StopError> {
        let running = self.shared.state.lock().running.take();
        let Some(running) = running else {
            return Ok(());
        };
        self.shared.caches.stop().await;
        running.stop(self.shared.options.grace_period).await
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

impl Shared {
    /// Starts a controller that came into use while the factory runs.
    pub(crate) fn start_late(&self, core: &Arc<ControllerCore>) {
        if let Some(running) = &mut self.state.lock().running {
            running.spawn(core);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Handlers may hold handles of controllers, which hold their handlers.
        for core in self
            .state
            .get_mut()
            .slots
            .values()
            .filter_map(|slot| slot.in_use())
        {
            core.lanes().clear();
        }
    }
}

impl fmt::Debug for SharedControllerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedControllerFactory")
            .field("status", &self.status())
            .finish()
    }
}
