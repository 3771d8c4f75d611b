//! The factory of clients, with one handle per kind and identity.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use http::HeaderMap;
use kube::Client;
use lariat_client::{Answering, ClientIdentity, CountedClient, IdentityError, RequestStatus};
use lariat_core::{Gvk, ResourceKind, TableSize};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::gate::WriteGate;
use super::kind::KindClient;
use super::observed::{GateOf, Late, Observed};
use super::write::WriteObserver;
use crate::mapper::RestMapper;

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
    /// The clients without an identity of their own: unfenced, and fenced.
    own: [OnceLock<Client>; 2],
    /// Weak, because a handle refers to the factory.
    kinds: Mutex<HashMap<(Gvk, ClientIdentity), Weak<KindClient>>>,
    /// Notified of every write.
    observer: Arc<OnceLock<Arc<dyn WriteObserver>>>,
    /// Called before every write.
    gate: Arc<OnceLock<Arc<dyn WriteGate>>>,
}

impl SharedClientFactory {
    /// Creates a factory over a client, without caches.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::with_answer_timeout(client, Answering::TIMEOUT)
    }

    /// Creates a factory over a client, with a timeout for answers.
    ///
    /// The timeout is for the whole answer, head and body (default 65 seconds, a little more than the API server's own
    /// timeout; zero means no timeout). Watches, followed logs, and calls into pods have no timeout.
    ///
    /// The timeout includes retries of refused requests: a 429 with a `Retry-After`, or for reads a 5xx with one, is
    /// retried up to ten times. A request that is not answered in time fails with [`kube::Error::Service`], and so does
    /// one whose answer does not end in time; a write may have been carried out nevertheless.
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
                answer_timeout: answer_timeout.into().unwrap_or(Answering::TIMEOUT),
                mapper: RestMapper::counting(client.clone()),
                base: client,
                own: Default::default(),
                kinds: Mutex::default(),
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
    /// The gate applies to all kinds and identities, and to clients that were returned before, but not to those [with a
    /// gate of their own](Self::client_with_gate). Only the first gate is set; returns whether this is the one. A
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
    /// configurations of webhooks. As with [`client_as`](Self::client_as), each call may create a client.
    ///
    /// # Errors
    ///
    /// Fails if the identity cannot be sent as headers.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
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

    /// Creates a client for writes under an identity.
    ///
    /// Each call creates another client, which is a task until its last clone is dropped; the client without an
    /// identity is shared.
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
    /// Panics outside a tokio runtime.
    pub fn client_as(&self, identity: ClientIdentity) -> Result<Client, IdentityError> {
        let headers = identity.headers()?;
        Ok(self.client_of(identity, headers, true))
    }

    pub(super) fn client_of(
        &self,
        identity: ClientIdentity,
        headers: HeaderMap,
        is_fenced: bool,
    ) -> Client {
        assert_runtime();
        let gate = Arc::clone(&self.shared.gate);
        let gate = if is_fenced {
            GateOf::Factory(gate)
        } else {
            GateOf::Unfenced(gate)
        };
        let is_shared = identity.is_empty();
        let make = || self.make_client(identity, headers, gate);
        if is_shared {
            let own = &self.shared.own[usize::from(is_fenced)];
            own.get_or_init(make).clone()
        } else {
            make()
        }
    }

    fn make_client(&self, identity: ClientIdentity, headers: HeaderMap, gate: GateOf) -> Client {
        let base = self.shared.base.clone();
        let namespace = base.uncounted().default_namespace().to_owned();
        let observed = Observed {
            client: Answering::new(base, self.shared.answer_timeout),
            identity,
            headers,
            observer: Arc::new(Late(Arc::clone(&self.shared.observer))),
            gate,
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
    /// takes more than a second. If the factory's client was not created by [`connect`](lariat_client::connect) or a
    /// similar function, or a service around it adds headers, all requests do.
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
        lariat_client::separate(&self.shared.base)
    }

    /// Returns the requests that were sent so far, with their results.
    #[must_use]
    pub fn requests(&self) -> RequestStatus {
        self.shared.base.status()
    }

    /// Returns the size of the table of handles, and its bound.
    pub(crate) fn table_size(&self) -> TableSize {
        let kinds = self.shared.kinds.lock();
        let alive = kinds.values().filter(|kind| kind.strong_count() > 0);
        TableSize::new("client handles", kinds.len(), alive.count())
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
            self.for_kind(&gvk).place()
        };
        let mut kinds = self.shared.kinds.lock();
        let known = kinds.get(&(gvk.clone(), identity.clone()));
        if let Some(known) = known.and_then(Weak::upgrade) {
            return known;
        }
        let kind = KindClient::new(
            gvk.clone(),
            self.clone(),
            (identity.clone(), headers),
            place,
        );
        let kind = Arc::new(kind);
        kinds.insert((gvk, identity), Arc::downgrade(&kind));
        kind
    }

    /// Returns the handle of a kind whose resource is known, without discovery.
    #[must_use]
    pub fn for_resource_kind(&self, resource: &ResourceKind) -> Arc<KindClient> {
        let kind = self.for_kind(resource.gvk());
        kind.give_resource(resource);
        kind
    }

    /// Removes the entry of a handle that was dropped, unless a new handle was created meanwhile.
    pub(super) fn forget_kind(&self, id: &(Gvk, ClientIdentity)) {
        let mut kinds = self.shared.kinds.lock();
        let entry = kinds.get(id);
        if entry.is_some_and(|kind| kind.strong_count() == 0) {
            kinds.remove(id);
        }
    }

    /// Returns whether both are the same factory.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns the client that reads caches.
    pub(super) fn base(&self) -> &CountedClient {
        &self.shared.base
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

impl fmt::Debug for SharedClientFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedClientFactory")
            .field("kinds", &self.shared.kinds.lock().len())
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
    async fn a_handle_that_is_dropped_is_not_remembered() {
        let clients = factory();
        let gvk = |number: usize| Gvk::new("demo.dev", "v1", &format!("Kind{number}"));
        let kept = clients.for_kind(gvk(0));
        for number in 0..100 {
            let identity = ClientIdentity::default().impersonate("jane");
            let handle = clients.for_kind_as(gvk(number), identity);
            drop(handle.expect("it can be sent"));
        }
        assert_eq!(clients.shared.kinds.lock().len(), 1);
        assert!(Arc::ptr_eq(&kept, &clients.for_kind(gvk(0))));
    }
}
