//! One client for all kinds, one handle for each.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use lariat_core::{Gvk, ResourceKind, Scope};
use parking_lot::Mutex;

use crate::mapper::{MapperError, RestMapper};

/// Gives out one [`KindClient`] per kind; a clone is the same factory.
#[derive(Clone)]
pub struct SharedClientFactory {
    client: Client,
    mapper: RestMapper,
    kinds: Arc<Mutex<HashMap<Gvk, Arc<KindClient>>>>,
}

impl SharedClientFactory {
    /// Makes a factory over a client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            mapper: RestMapper::new(client.clone()),
            client,
            kinds: Arc::default(),
        }
    }

    /// Returns the client everything goes through.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the mapper of kinds to resources.
    #[must_use]
    pub fn mapper(&self) -> &RestMapper {
        &self.mapper
    }

    /// Returns the handle of a kind; asking twice returns the same. Nothing is sent.
    #[must_use]
    pub fn for_kind(&self, gvk: impl Into<Gvk>) -> Arc<KindClient> {
        let gvk = gvk.into();
        let mut kinds = self.kinds.lock();
        let kind = kinds.entry(gvk).or_insert_with_key(|gvk| {
            Arc::new(KindClient {
                gvk: gvk.clone(),
                client: self.client.clone(),
                mapper: self.mapper.clone(),
                resource: OnceLock::new(),
            })
        });
        Arc::clone(kind)
    }

    /// Returns the handle of a kind whose resource is known, so that discovery is not needed.
    #[must_use]
    pub fn for_resource_kind(&self, resource: &ResourceKind) -> Arc<KindClient> {
        let kind = self.for_kind(resource.gvk());
        // Whoever told the resource first is believed; all of them describe the same kind.
        let _ = kind.resource.set(resource.clone());
        kind
    }
}

impl fmt::Debug for SharedClientFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedClientFactory")
            .field("kinds", &self.kinds.lock().len())
            .finish_non_exhaustive()
    }
}

/// The client of one kind: knows where it is served, and asks discovery at most once.
pub struct KindClient {
    gvk: Gvk,
    client: Client,
    mapper: RestMapper,
    resource: OnceLock<ResourceKind>,
}

impl KindClient {
    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    /// Returns the client underneath.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns where the kind is served.
    ///
    /// # Errors
    ///
    /// The kind is not served, or discovery does not answer; the next call asks again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing but the request under way.
    pub async fn resource(&self) -> Result<&ResourceKind, MapperError> {
        if let Some(resource) = self.resource.get() {
            return Ok(resource);
        }
        let resource = self.mapper.kind(&self.gvk).await?;
        Ok(self.resource.get_or_init(|| resource))
    }

    /// Returns kube's `Api` for the kind, in one namespace or, for `None`, over all.
    ///
    /// The namespace is ignored for a cluster-scoped kind.
    ///
    /// # Errors
    ///
    /// As for [`resource`](Self::resource).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing but the request under way.
    pub async fn api(&self, namespace: Option<&str>) -> Result<Api<DynamicObject>, MapperError> {
        let resource = self.resource().await?;
        let described = ApiResource::from(resource);
        let namespace = namespace.filter(|_| resource.scope() == Scope::Namespaced);
        let client = self.client.clone();
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
            .field("resource", &self.resource.get())
            .finish_non_exhaustive()
    }
}
