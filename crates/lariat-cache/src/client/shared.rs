//! The factory of clients, with one handle per kind and identity.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use http::HeaderMap;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use lariat_core::{Gvk, ResourceKind, Scope, TableSize};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::answer::ANSWER_TIMEOUT;
use super::gate::WriteGate;
use super::identity::{ClientIdentity, IdentityError};
use super::observed::{GateOf, Observed};
use super::separate::Separate;
use super::write::{KindCache, Sent, Write, WriteObserver};
use crate::mapper::{MapperError, RestMapper, Served};
use crate::requests::{CountedClient, RequestStatus};

/// A factory of clients: one [`KindClient`] per kind and identity.
///
/// A clone is the same factory. The factory of a [`SharedCacheFactory`](crate::SharedCacheFactory) applies answers to
/// writes to its caches, so that a program reads its own writes.
///
/// ```no_run
/// use lariat::cache::{ClientIdentity, SharedClientFactory};
/// use lariat::Gvk;
///
/// # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let clients = SharedClientFactory::new(client);
/// let scaler = ClientIdentity::default().field_manager("scaler");
/// let deployments = clients.for_kind_as(Gvk::new("apps", "v1", "Deployment"), scaler)?;
/// let shop = deployments.api(Some("shop")).await?;
/// # let _ = shop; Ok(()) }
/// ```
#[derive(Clone)]
pub struct SharedClientFactory {
    shared: Arc<Clients>,
}

struct Clients {
    /// The base client; reflectors read through it.
    base: CountedClient,
    mapper: RestMapper,
    /// The timeout of an answer.
    answer_timeout: Duration,
    state: Mutex<ClientTable>,
    /// Notified of every write.
    observer: Arc<OnceLock<Arc<dyn WriteObserver>>>,
    /// Called before every write.
    gate: Arc<OnceLock<Arc<dyn WriteGate>>>,
}

#[derive(Default)]
struct ClientTable {
    /// Weak, because a handle refers to the factory.
    kinds: HashMap<(Gvk, ClientIdentity), Weak<KindClient>>,
    /// One client per identity and fence, with the number of its last use.
    clients: HashMap<(ClientIdentity, IsFenced), (u64, Client)>,
    /// Numbers the uses of clients.
    uses: u64,
}

/// Whether a client asks the fence of the factory's gate.
type IsFenced = bool;

/// For how many identities clients are kept.
///
/// A program that impersonates users named in objects may have any number.
const MOST_IDENTITIES: usize = 256;

impl SharedClientFactory {
    /// Creates a factory over a client, without caches.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::with_answer_timeout(client, ANSWER_TIMEOUT)
    }

    /// Creates a factory over a client, with a timeout for answers.
    ///
    /// The timeout is for the whole answer, head and body (default 65 seconds, a little more than the API server's own
    /// timeout; zero means no timeout). Watches, followed logs, and calls into pods have no timeout.
    ///
    /// It includes retries of refused requests: a 429 with a `Retry-After`, or for reads a 5xx with one, is retried up
    /// to ten times. A request that is not answered in time fails with [`kube::Error::Service`], and so does one whose
    /// answer does not end in time; a write may have been carried out nevertheless.
    #[must_use]
    pub fn with_answer_timeout(client: Client, answer_timeout: Duration) -> Self {
        Self::counting(CountedClient::new(client), answer_timeout)
    }

    /// Creates a factory over a client that counts, with a timeout or the default one.
    pub(crate) fn counting(
        client: CountedClient,
        answer_timeout: impl Into<Option<Duration>>,
    ) -> Self {
        Self {
            shared: Arc::new(Clients {
                answer_timeout: answer_timeout.into().unwrap_or(ANSWER_TIMEOUT),
                mapper: RestMapper::counting(client.clone()),
                base: client,
                state: Mutex::default(),
                observer: Arc::default(),
                gate: Arc::default(),
            }),
        }
    }

    /// Sets the observer of every write; only the first one is kept.
    pub(crate) fn observe(&self, observer: Arc<dyn WriteObserver>) {
        let _ = self.shared.observer.set(observer);
    }

    /// Sets a gate that is called before each write through clients of this factory.
    ///
    /// It applies to all kinds and identities, and to clients that were returned before, but not to those [with a gate
    /// of their own](Self::client_with_gate). Only the first gate is set; returns whether this is the one. A
    /// `SharedControllerFactory` sets one, which calls the gates of its handlers.
    pub fn set_gate(&self, gate: Arc<dyn WriteGate>) -> bool {
        self.shared.gate.set(gate).is_ok()
    }

    /// Returns the client for writes without an identity.
    ///
    /// Its writes are applied to the caches immediately, before the watch reports them. Some answers do not show the
    /// new state for certain, so the watch brings it: subresources that answer with another object, collections,
    /// deletions that an API outside the core group answers with an object that is not marked as deleted, and, for
    /// caches of content, answers with metadata only, which a request may ask for (`PartialObjectMetadata`, as
    /// [`Api::patch_metadata`](kube::Api::patch_metadata) does).
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime, if it is the first call.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client_of(ClientIdentity::default(), HeaderMap::new(), true)
    }

    /// Returns the client for writes under an identity that need no fence.
    ///
    /// They ask the gate all the same. It is for writes that every replica may make, such as Events, CRDs and the
    /// configurations of webhooks.
    ///
    /// # Errors
    ///
    /// Fails if the identity cannot be sent as headers.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime, if it is the first call for the identity.
    pub fn unfenced_client_as(&self, identity: ClientIdentity) -> Result<Client, IdentityError> {
        let headers = identity.headers()?;
        Ok(self.client_of(identity, headers, false))
    }

    /// Creates a client under an identity whose writes a gate of its own decides about.
    ///
    /// The gate of the factory is not asked. Each call creates another client, which is a task until its last clone is
    /// dropped.
    ///
    /// # Errors
    ///
    /// Fails if the identity cannot be sent as headers.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    pub fn client_with_gate(
        &self,
        identity: ClientIdentity,
        gate: Arc<dyn WriteGate>,
    ) -> Result<Client, IdentityError> {
        let headers = identity.headers()?;
        assert_runtime();
        Ok(self.make_client(identity, headers, GateOf::Own(gate)))
    }

    /// Returns the client for writes under an identity.
    ///
    /// The same identity gets the same client, as long as no more than 256 other identities were used since. A client
    /// that is no longer kept continues to work for its holders.
    ///
    /// ```no_run
    /// use lariat::cache::{ClientIdentity, IdentityError, SharedClientFactory};
    ///
    /// # fn example(clients: SharedClientFactory) -> Result<(), IdentityError> {
    /// let client = clients.client_as(ClientIdentity::default().impersonate("alice"))?;
    /// # drop(client);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the identity cannot be sent as headers.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime, if it is the first call for the identity.
    pub fn client_as(&self, identity: ClientIdentity) -> Result<Client, IdentityError> {
        let headers = identity.headers()?;
        Ok(self.client_of(identity, headers, true))
    }

    fn client_of(
        &self,
        identity: ClientIdentity,
        headers: HeaderMap,
        is_fenced: IsFenced,
    ) -> Client {
        assert_runtime();
        let mut state = self.shared.state.lock();
        state.uses += 1;
        let now = state.uses;
        let id = (identity, is_fenced);
        if let Some((used, client)) = state.clients.get_mut(&id) {
            *used = now;
            return client.clone();
        }
        let gate = Arc::clone(&self.shared.gate);
        let gate = if is_fenced {
            GateOf::Factory(gate)
        } else {
            GateOf::Unfenced(gate)
        };
        let client = self.make_client(id.0.clone(), headers, gate);
        let removed = state.make_room_for_client();
        state.clients.insert(id, (now, client.clone()));
        // The removed client is dropped after the lock is released: that ends a task of kube.
        drop(state);
        drop(removed);
        client
    }

    fn make_client(&self, identity: ClientIdentity, headers: HeaderMap, gate: GateOf) -> Client {
        let base = self.shared.base.clone();
        let namespace = base.uncounted().default_namespace().to_owned();
        let observed = Observed {
            client: base,
            identity,
            headers,
            observer: Arc::new(Late(Arc::clone(&self.shared.observer))),
            gate,
            answer_timeout: self.shared.answer_timeout,
        };
        Client::new(observed, namespace)
    }

    /// Returns a client with connections and credentials of its own.
    ///
    /// Its tasks belong to the current runtime. A program on two runtimes needs it: the connections of a client stand
    /// still while the runtime is blocked that the client was created on. Its requests are counted with those of the
    /// factory; no gate is called, and its writes are not applied to caches. An exec plugin of the configuration is run
    /// for it too.
    ///
    /// The first request goes through the factory's connections, and so do later ones while an exec plugin fails or
    /// takes more than a second. If the factory's client was not created by [`connect`](crate::connect) or a similar
    /// function, or a service around it adds headers, all requests do.
    ///
    /// ```no_run
    /// use lariat::cache::SharedClientFactory;
    ///
    /// # fn example(clients: &SharedClientFactory) {
    /// let client = clients.separate_client();
    /// # let _ = client; }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    #[must_use]
    pub fn separate_client(&self) -> Client {
        let base = self.shared.base.clone();
        let namespace = base.uncounted().default_namespace().to_owned();
        Client::new(Separate::new(base), namespace)
    }

    /// Returns the requests that were sent so far, with their results.
    #[must_use]
    pub fn requests(&self) -> RequestStatus {
        self.shared.base.status()
    }

    /// Returns the sizes of the tables, and their bounds.
    pub(crate) fn table_sizes(&self) -> [TableSize; 3] {
        let (discovered, most) = self.shared.mapper.known();
        let state = self.shared.state.lock();
        let alive = state.kinds.values().filter(|kind| kind.strong_count() > 0);
        [
            TableSize::new("client handles", state.kinds.len(), alive.count()),
            TableSize::new("clients", state.clients.len(), MOST_IDENTITIES + 2),
            TableSize::new("discovered groups", discovered, most),
        ]
    }

    /// Returns the mapper from kinds to resources.
    #[must_use]
    pub fn mapper(&self) -> &RestMapper {
        &self.shared.mapper
    }

    /// Returns the handle of a kind, without sending anything.
    ///
    /// As long as a handle exists, later calls return the same one.
    #[must_use]
    pub fn for_kind(&self, gvk: impl Into<Gvk>) -> Arc<KindClient> {
        self.kind(gvk.into(), ClientIdentity::default(), HeaderMap::new())
    }

    /// Returns the handle of a kind for requests under an identity.
    ///
    /// As long as a handle exists, later calls return the same one.
    ///
    /// # Errors
    ///
    /// Fails if the identity cannot be sent as headers.
    pub fn for_kind_as(
        &self,
        gvk: impl Into<Gvk>,
        identity: ClientIdentity,
    ) -> Result<Arc<KindClient>, IdentityError> {
        let headers = identity.headers()?;
        Ok(self.kind(gvk.into(), identity, headers))
    }

    fn kind(&self, gvk: Gvk, identity: ClientIdentity, headers: HeaderMap) -> Arc<KindClient> {
        // Outside the lock, which the drop of the handle takes.
        let place = if identity.is_empty() {
            Arc::default()
        } else {
            Arc::clone(&self.for_kind(&gvk).place)
        };
        let mut state = self.shared.state.lock();
        let known = state.kinds.get(&(gvk.clone(), identity.clone()));
        if let Some(known) = known.and_then(Weak::upgrade) {
            return known;
        }
        let kind = Arc::new(KindClient {
            gvk: gvk.clone(),
            factory: self.clone(),
            identity: (identity.clone(), headers),
            place,
        });
        state.kinds.insert((gvk, identity), Arc::downgrade(&kind));
        kind
    }

    /// Returns the handle of a kind whose resource is known, without discovery.
    #[must_use]
    pub fn for_resource_kind(&self, resource: &ResourceKind) -> Arc<KindClient> {
        let kind = self.for_kind(resource.gvk());
        // The first known resource is kept; all of them describe the same kind.
        let mut place = kind.place.lock();
        if !matches!(&*place, Some(ServedAt::Given(_) | ServedAt::Discovered(_))) {
            *place = Some(ServedAt::Given(resource.clone()));
        }
        drop(place);
        kind
    }
}

impl ClientTable {
    /// Removes the least recently used client if there are too many.
    ///
    /// The clients without an identity are never removed.
    fn make_room_for_client(&mut self) -> Option<(u64, Client)> {
        let others = self
            .clients
            .iter()
            .filter(|((identity, _), _)| !identity.is_empty());
        if others.clone().count() < MOST_IDENTITIES {
            return None;
        }
        let oldest = others
            .min_by_key(|(_, (used, _))| *used)
            .map(|(id, _)| id.clone())?;
        self.clients.remove(&oldest)
    }
}

impl Drop for KindClient {
    /// Removes the entry of the handle, unless a new handle was created meanwhile.
    fn drop(&mut self) {
        let id = (self.gvk.clone(), self.identity.0.clone());
        let mut state = self.factory.shared.state.lock();
        if state
            .kinds
            .get(&id)
            .is_some_and(|kind| kind.strong_count() == 0)
        {
            state.kinds.remove(&id);
        }
    }
}

/// Panics outside a runtime.
///
/// kube spawns a task for each client, and its panic would not show where it comes from.
fn assert_runtime() {
    assert!(
        Handle::try_current().is_ok(),
        "a client of Lariat was requested outside a tokio runtime; call it inside \
                 `#[tokio::main]`, or after `Runtime::enter`"
    );
}

/// Forwards to an observer that is set after the client was created.
struct Late(Arc<OnceLock<Arc<dyn WriteObserver>>>);

impl WriteObserver for Late {
    fn cache_of(&self, write: &Write) -> Option<KindCache> {
        self.0.get()?.cache_of(write)
    }

    fn wrote(&self, write: &Write, answer: &[u8], sent: Sent) {
        if let Some(observer) = self.0.get() {
            observer.wrote(write, answer, sent);
        }
    }
}

impl fmt::Debug for SharedClientFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedClientFactory")
            .field("kinds", &self.shared.state.lock().kinds.len())
            .finish_non_exhaustive()
    }
}

/// The client of one kind.
///
/// It finds the resource that serves the kind by discovery, once, and again if the kind is not served any more.
///
/// ```no_run
/// use lariat::Gvk;
/// use lariat::cache::SharedClientFactory;
///
/// # async fn example(clients: SharedClientFactory) -> Result<(), Box<dyn std::error::Error>> {
/// let widgets = clients.for_kind(Gvk::new("example.com", "v1", "Widget"));
/// let widget = widgets.api(Some("shop")).await?.get("blue").await?;
/// println!("{:?}", widget.data);
/// # Ok(()) }
/// ```
pub struct KindClient {
    gvk: Gvk,
    factory: SharedClientFactory,
    identity: (ClientIdentity, HeaderMap),
    /// The resource of the kind; shared by the handles of all identities.
    place: Arc<Mutex<Option<ServedAt>>>,
}

/// The resource of a kind, and where it is known from.
enum ServedAt {
    Given(ResourceKind),
    Discovered(Served),
    /// The last resource, before an API server reported that it is not served.
    ///
    /// Discovery is repeated at the next use.
    Outdated(ResourceKind),
}

impl KindClient {
    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    /// Returns whether this is a handle of a factory, under any identity.
    #[must_use]
    pub fn is_of(&self, factory: &SharedClientFactory) -> bool {
        Arc::ptr_eq(&self.factory.shared, &factory.shared)
    }

    /// Returns the underlying client, for requests of any kind under the same identity.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime, if the identity is used for the first time.
    #[must_use]
    pub fn client(&self) -> Client {
        let (identity, headers) = self.identity.clone();
        self.factory.client_of(identity, headers, true)
    }

    /// Returns the underlying client for writes that need no fence.
    ///
    /// See [`SharedClientFactory::unfenced_client_as`].
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime, if the identity is used for the first time.
    #[must_use]
    pub fn unfenced_client(&self) -> Client {
        let (identity, headers) = self.identity.clone();
        self.factory.client_of(identity, headers, false)
    }

    /// Returns the client that reads caches.
    pub(crate) fn reading_client(&self) -> &CountedClient {
        &self.factory.shared.base
    }

    /// Returns the resource of the kind, if it is known.
    #[must_use]
    pub fn known_resource(&self) -> Option<ResourceKind> {
        match &*self.place.lock() {
            Some(ServedAt::Given(resource)) => Some(resource.clone()),
            Some(ServedAt::Discovered(served)) => Some(served.resource.clone()),
            Some(ServedAt::Outdated(_)) | None => None,
        }
    }

    /// Returns the resource of the kind, or the last known one.
    pub(crate) fn last_resource(&self) -> Option<ResourceKind> {
        match &*self.place.lock() {
            Some(ServedAt::Given(resource) | ServedAt::Outdated(resource)) => {
                Some(resource.clone())
            }
            Some(ServedAt::Discovered(served)) => Some(served.resource.clone()),
            None => None,
        }
    }

    /// Returns an error if discovery has found the kind, and it cannot be watched.
    pub(crate) fn check_watchable(&self) -> Result<(), MapperError> {
        match &*self.place.lock() {
            Some(ServedAt::Discovered(served)) if !served.is_watchable => {
                Err(MapperError::NotWatchable {
                    gvk: self.gvk.clone(),
                    is_listable: served.is_listable,
                })
            }
            _ => Ok(()),
        }
    }

    /// Sets the resource of the kind, which replaces any other.
    pub fn set_resource(&self, resource: ResourceKind) {
        *self.place.lock() = Some(ServedAt::Given(resource));
    }

    /// Forgets the resource of the kind, unless the program has set it.
    pub(crate) fn forget_resource(&self) {
        let mut place = self.place.lock();
        if let Some(ServedAt::Discovered(served)) = &*place {
            *place = Some(ServedAt::Outdated(served.resource.clone()));
            self.factory.mapper().forget(&self.gvk.api_path());
        }
    }

    /// Returns the resource of the kind, from discovery if it is not known.
    ///
    /// # Errors
    ///
    /// Fails if the kind is not served, or discovery fails; the next call repeats the discovery.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request in flight and loses nothing else.
    pub async fn resource(&self) -> Result<ResourceKind, MapperError> {
        if let Some(resource) = self.known_resource() {
            return Ok(resource);
        }
        let served = self.factory.mapper().served(&self.gvk).await?;
        let resource = served.resource.clone();
        let mut place = self.place.lock();
        if !matches!(&*place, Some(ServedAt::Given(_) | ServedAt::Discovered(_))) {
            *place = Some(ServedAt::Discovered(served));
        }
        Ok(resource)
    }

    /// Returns kube's `Api` for the kind, in one namespace or, for `None`, in all.
    ///
    /// The namespace is ignored for a cluster-scoped kind.
    ///
    /// ```no_run
    /// use kube::api::{DynamicObject, PostParams};
    /// use lariat::cache::KindClient;
    ///
    /// # async fn example(
    /// #     widgets: &KindClient, widget: DynamicObject,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let shop = widgets.api(Some("shop")).await?;
    /// shop.create(&PostParams::default(), &widget).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`resource`](Self::resource) does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request in flight and loses nothing else.
    pub async fn api(&self, namespace: Option<&str>) -> Result<Api<DynamicObject>, MapperError> {
        let resource = self.resource().await?;
        let described = ApiResource::from(&resource);
        let namespace = namespace.filter(|_| resource.scope() == Scope::Namespaced);
        let client = self.client();
        Ok(match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &described),
            None => Api::all_with(client, &described),
        })
    }
}

impl fmt::Debug for KindClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindClient")
            .field("gvk", &self.gvk)
            .field("resource", &self.known_resource())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;

    use super::*;

    fn factory() -> SharedClientFactory {
        let service = tower::service_fn(|_: Request<Body>| async {
            Ok::<_, std::io::Error>(Response::new(Body::empty()))
        });
        SharedClientFactory::new(Client::new(service, "default"))
    }

    #[tokio::test]
    async fn clients_of_the_identities_asked_for_last_are_kept() {
        let clients = factory();
        let user = |number: usize| ClientIdentity::default().impersonate(format!("user-{number}"));
        drop(clients.client());
        for number in 0..1_000 {
            clients.client_as(user(number)).expect("it can be sent");
            clients.client_as(user(0)).expect("it can be sent");
        }
        let state = clients.shared.state.lock();
        assert_eq!(state.clients.len(), MOST_IDENTITIES + 1);
        for kept in [ClientIdentity::default(), user(0), user(999)] {
            assert!(state.clients.contains_key(&(kept, true)));
        }
        assert!(!state.clients.contains_key(&(user(1), true)));
    }

    #[tokio::test]
    async fn a_handle_that_is_dropped_is_not_remembered() {
        let clients = factory();
        let gvk = |number: usize| Gvk::new("demo.dev", "v1", &format!("Kind{number}"));
        let kept = clients.for_kind(gvk(0));
        for number in 0..100 {
            let identity = ClientIdentity::default().impersonate("jane");
            let handle = clients.for_kind_as(gvk(number), identity);
            drop(handle.expect("it can be sent"));
        }
        assert_eq!(clients.shared.state.lock().kinds.len(), 1);
        assert!(Arc::ptr_eq(&kept, &clients.for_kind(gvk(0))));
    }
}
