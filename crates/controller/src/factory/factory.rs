//! The handle of a factory.

use std::any::TypeId;
use std::fmt;
use std::sync::{Arc, Weak};

use kube::Client;
use kube::api::DynamicObject;
use kube::core::ClusterResourceScope;
use lariat_cache::{
    CacheFactoryBuilder, ClientIdentity, MapperError, Metadata, SharedCacheFactory, View,
};
use lariat_core::{Gvk, ResourceKind, Scope, TableSize};
use lariat_lease::{Leadership, Shards};

use super::core::FactoryCore;
use super::options::Options;
use super::transaction::Transaction;
use crate::controller::{Kinds, SharedController, Slot};
use crate::gate::Gate;
use crate::many::{AllKinds, Follows};
use crate::status::FactoryStatus;

/// Creates one [`SharedController`] per kind, and runs them.
///
/// Clones are handles of the same factory. A kind is identified by group, version and kind alone: a typed handle and a
/// dynamic one of the same kind are the same controller, with one watch, one cache and one queue.
///
/// [`stop`](Self::stop) processes the keys that are due, and then ends. Dropping the last clone aborts the controllers
/// instead, even if handles of them are left, unless a stop has begun, which goes on. A handler that captures a clone
/// of the factory keeps it alive forever; capture a [`WeakControllerFactory`].
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::{Context, HandlerResult, Outcome, SharedControllerFactory};
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
    pub(crate) core: Arc<FactoryCore>,
}

/// A handle of a factory that does not keep it alive.
///
/// Use it for code that only observes the factory, such as a status page, and in handlers.
///
/// ```no_run
/// use lariat::SharedControllerFactory;
///
/// # fn example(factory: &SharedControllerFactory) {
/// let weak = factory.downgrade();
/// if let Some(factory) = weak.upgrade() {
///     println!("{} controllers", factory.controllers().len());
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct WeakControllerFactory {
    core: Weak<FactoryCore>,
}

impl WeakControllerFactory {
    /// Returns the factory; `None` once its last handle was dropped.
    #[must_use]
    pub fn upgrade(&self) -> Option<SharedControllerFactory> {
        let core = self.core.upgrade()?;
        Some(SharedControllerFactory { core })
    }

    /// Returns whether the factory still exists.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.core.strong_count() > 0
    }
}

impl fmt::Debug for WeakControllerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alive = self.is_alive();
        f.debug_struct("WeakControllerFactory")
            .field("alive", &alive)
            .finish()
    }
}

impl SharedControllerFactory {
    pub(super) fn new(caches: CacheFactoryBuilder, options: Options) -> Self {
        Self {
            core: Arc::new(FactoryCore::new(caches.build(), options)),
        }
    }

    /// Returns the controller of a Rust type's kind.
    ///
    /// No request is sent: the type knows its group, version, plural and scope.
    #[must_use]
    pub fn for_object<K>(&self) -> SharedController<K>
    where
        K: kube::Resource<DynamicType = ()> + View,
        K::Scope: 'static,
    {
        let gvk = Gvk::new(&K::group(&()), &K::version(&()), &K::kind(&()));
        // A scope of kube is a type without values, so the types are compared.
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
    /// No request is sent now. Discovery finds the plural and the scope of the kind when the factory starts, or while
    /// it runs, when the controller is first used.
    ///
    /// ```no_run
    /// use lariat::{Gvk, SharedControllerFactory};
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
    /// No request is sent, and no discovery is needed.
    #[must_use]
    pub fn for_resource_kind(&self, resource: ResourceKind) -> SharedController<DynamicObject> {
        let slot = self.slot(resource.gvk().clone());
        slot.set_resource(resource);
        SharedController::new(slot)
    }

    /// Returns the controller of a resource, as dynamic objects.
    ///
    /// `group` is empty for the core group. Discovery is asked for the kind, before this returns.
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
        let mapper = self.core.caches.clients().mapper();
        Ok(self.for_resource_kind(mapper.resource(group, version, plural).await?))
    }

    fn slot(&self, gvk: Gvk) -> Arc<Slot> {
        Arc::clone(&self.core).slot(gvk)
    }

    /// Returns all listable and watchable kinds that a predicate selects.
    ///
    /// Kinds that are served later are included. Objects are dynamic.
    ///
    /// ```no_run
    /// use lariat::controller::RegisterError;
    /// use lariat::{Context, Metadata, Outcome, SharedControllerFactory};
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
    /// The predicate is called for each kind after every discovery; see [`AllKinds`]. Nothing is watched until a
    /// handler is registered.
    #[must_use]
    pub fn for_all_kinds(
        &self,
        wanted: impl Fn(&ResourceKind) -> bool + Send + Sync + 'static,
    ) -> AllKinds<DynamicObject> {
        let factory: Weak<dyn Follows> = Arc::<FactoryCore>::downgrade(&self.core);
        AllKinds::new(factory, Arc::new(wanted))
    }

    /// Returns the controllers in use, sorted by kind, as views of metadata.
    ///
    /// A controller is in use from its first handler or enqueued key on, until its last handler is deregistered and the
    /// calls have ended.
    /// [`view`](SharedController::view) reads its objects as another type.
    #[must_use]
    pub fn controllers(&self) -> Vec<SharedController<Metadata>> {
        let slots = self.core.slots().into_iter();
        let in_use = slots.filter(|slot| slot.in_use().is_some());
        in_use.map(SharedController::new).collect()
    }

    /// Returns a handle that does not keep the factory alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakControllerFactory {
        WeakControllerFactory {
            core: Arc::downgrade(&self.core),
        }
    }

    /// Begins a [`Transaction`], which registers several handlers or none.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(Arc::clone(&self.core))
    }

    /// Returns the factory of the caches, for caches without handlers.
    ///
    /// The caches start and stop with this factory. Dropping the last clone of this factory stops them too.
    #[must_use]
    pub fn caches(&self) -> &SharedCacheFactory {
        &self.core.caches
    }

    /// Returns the client to use for writes outside of handlers.
    ///
    /// A write through it is visible in the caches when it returns, without waiting for the watch. The [gates of the
    /// factory](Self::add_gate) decide on its writes. With an election or a ring its writes are sent only while this
    /// process leads or is a member, as those of a [call's client](crate::Context::client) are; see
    /// [`unfenced_client`](Self::unfenced_client) for what every replica may write. In a handler use the client of the
    /// call: a client from here is under the gates of the handler on the task of the call only.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::api::{Api, PostParams};
    /// use lariat::SharedControllerFactory;
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
        self.core.caches.clients().client()
    }

    /// Returns a client whose writes do not need the lease.
    ///
    /// Use it for what every replica may write at any time, such as CRDs. The [gates of the factory](Self::add_gate)
    /// decide on its writes, which are visible in the caches when they return.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime for the first time.
    #[must_use]
    pub fn unfenced_client(&self) -> Client {
        let clients = self.core.caches.clients();
        clients
            .unfenced_client_as(ClientIdentity::default())
            .expect("no identity needs no headers")
    }

    /// Adds a gate for all further writes through clients of the factory.
    ///
    /// It decides on writes inside and outside of calls, whichever of the factory's clients sends them, and also on
    /// those of clients that were returned before. Writes through the client that the factory was created with are not
    /// covered, nor is the lease. See [`Gate`] for the order; a gate cannot be removed.
    pub fn add_gate(&self, gate: impl Gate) {
        self.core.gate.add(Arc::new(gate));
    }

    /// Returns the leadership of this process; `None` without an election.
    ///
    /// See [`leader_election`](crate::FactoryBuilder::leader_election).
    #[must_use]
    pub fn leadership(&self) -> Option<Leadership> {
        self.core.options.leadership()
    }

    /// Returns the shards of this process; `None` without a ring.
    ///
    /// See [`sharding`](crate::FactoryBuilder::sharding).
    #[must_use]
    pub fn shards(&self) -> Option<Shards> {
        self.core.options.shards()
    }

    /// Returns the state and the counters of every controller in use, sorted by kind.
    #[must_use]
    pub fn status(&self) -> FactoryStatus {
        let slots = self.core.slots();
        let in_use = slots.iter().filter_map(|slot| slot.used());
        FactoryStatus(in_use.map(|(core, opened)| core.status(&opened)).collect())
    }
}

impl SharedControllerFactory {
    /// Returns the size and bound of every internal structure, by kind.
    ///
    /// Every structure has a bound, so a long-running program cannot grow without limit. Use the sizes for checks and
    /// gauges. Objects in the caches are not included.
    ///
    /// Locks are held briefly, and the cost does not grow with the number of objects or keys. The sizes of [the
    /// caches](SharedCacheFactory::table_sizes) come first, followed by:
    ///
    /// | `name` | keyed by | bound |
    /// |---|---|---|
    /// | `queue keys`, `queue tickets` | object key | the keys that are due, delayed or being processed: [`QueueMemory`](lariat_queue::QueueMemory) |
    /// | `runs` | run | [`ControllerOptions::history`](crate::ControllerOptions::history) |
    /// | `older runs` | run, at most 4 of a key | 4,096 |
    /// | `failing keys` | handler and object key | 4,096 for each handler |
    /// | `given up keys` | handler and object key | 4,096 for each handler |
    /// | `suspects` | object key | 1,024; see [`HotLoopOptions`](crate::HotLoopOptions) |
    /// | `keys in line` | handler and object key | keys that wait because their handler is at its limit, paused, or waits for caches; zero if a call may begin |
    /// | `relations` | relation | relations that have not [ended](crate::Related::end) |
    /// | `owners set aside` | object key | for each relation 1,024, or twice the owners that objects name |
    /// | `controllers` | kind | 64, or twice the number of kinds with handlers, relations or handles |
    ///
    /// All entries of a kind are dropped with its last handler, except those of its cache. Some bounded structures are
    /// not listed, because they travel with a key: deletions that a handler has not handled (32 per name), the causes
    /// of a run, and the failures of a key's lanes. Keys that wait for caches or for the end of a pause are not listed
    /// either; each is kept once, however often it becomes due.
    #[must_use]
    pub fn table_sizes(&self) -> Vec<TableSize> {
        let state = self.core.state.lock();
        let slots = self.core.slots();
        let (controllers, most) = (slots.len(), state.most_slots());
        drop(state);
        let mut all = self.core.caches.table_sizes();
        slots.iter().for_each(|slot| slot.table_sizes(&mut all));
        all.push(TableSize::new("controllers", controllers, most));
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
