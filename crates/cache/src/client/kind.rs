//! The client of one kind, and where its resource is known from.

use std::fmt;
use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use lariat_client::{ClientIdentity, CountedClient};
use lariat_core::{Gvk, ResourceKind, Scope};
use parking_lot::Mutex;

use super::shared::SharedClientFactory;
use crate::mapper::{MapperError, Served};

/// The client of one kind.
///
/// The handle finds the resource that serves the kind by discovery, once, and again if the kind is not served any more.
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
    /// The clients: unfenced, and fenced.
    clients: [OnceLock<Client>; 2],
    /// The resource of the kind; shared by the handles of all identities.
    place: Place,
}

/// The resource of a kind, once it is known.
pub(super) type Place = Arc<Mutex<Option<ServedAt>>>;

/// The resource of a kind, and where it is known from.
pub(super) enum ServedAt {
    Given(ResourceKind),
    Discovered(Served),
    /// The last resource, before an API server reported that it is not served.
    ///
    /// Discovery is repeated at the next use.
    Outdated(ResourceKind),
}

impl KindClient {
    pub(super) fn new(
        gvk: Gvk,
        factory: SharedClientFactory,
        identity: (ClientIdentity, HeaderMap),
        place: Place,
    ) -> Self {
        Self {
            gvk,
            factory,
            identity,
            clients: Default::default(),
            place,
        }
    }

    /// Returns where the resource of the kind is kept, for a handle of another identity.
    pub(super) fn place(&self) -> Place {
        Arc::clone(&self.place)
    }

    /// Sets the resource of the kind, if none is known; all known ones describe the same kind.
    pub(super) fn give_resource(&self, resource: &ResourceKind) {
        let mut place = self.place.lock();
        if !matches!(&*place, Some(ServedAt::Given(_) | ServedAt::Discovered(_))) {
            *place = Some(ServedAt::Given(resource.clone()));
        }
    }

    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    /// Returns whether this is a handle of a factory, under any identity.
    #[must_use]
    pub fn is_of(&self, factory: &SharedClientFactory) -> bool {
        self.factory.is(factory)
    }

    /// Returns the underlying client, for requests of any kind under the same identity.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime, if it is the first call.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client_of(true)
    }

    /// Returns the underlying client for writes that need no fence.
    ///
    /// See [`SharedClientFactory::unfenced_client_as`].
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime, if it is the first call.
    #[must_use]
    pub fn unfenced_client(&self) -> Client {
        self.client_of(false)
    }

    fn client_of(&self, is_fenced: bool) -> Client {
        let (identity, headers) = self.identity.clone();
        let make = || self.factory.client_of(identity, headers, is_fenced);
        self.clients[usize::from(is_fenced)]
            .get_or_init(make)
            .clone()
    }

    /// Returns the client that reads caches.
    pub(crate) fn reading_client(&self) -> &CountedClient {
        self.factory.base()
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
    ///
    /// A kind that is not served any more keeps it.
    #[must_use]
    pub fn last_resource(&self) -> Option<ResourceKind> {
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

impl Drop for KindClient {
    fn drop(&mut self) {
        let id = (self.gvk.clone(), self.identity.0.clone());
        self.factory.forget_kind(&id);
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
