//! A handle that reads one kind from the shared cache and writes it through the factory's client.
//!
//! Each write sends one request and decodes the answer. The client records every object of an answer in the cache, so a
//! later read through the factory is not older than the write, if the cache is known to select the object.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use lariat_cache::{Cache, KindClient, Phase, Query, View};
use lariat_controller::{Context, SharedController};
use lariat_core::{Gvk, ObjectKey, RawObject, ResourceKind, Scope, path_segment, without_values};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::{ApiError, Built, Sender};

/// The default time limit of a read that waits for the cache to sync.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a kind from the shared cache, and writes it to the API server.
///
/// The methods are named like those of kube's [`Api`](kube::Api), but take an [`ObjectKey`] instead of being bound to
/// one namespace. Clones share the same cache and client.
///
/// A read sends no request. It waits until the cache is synced, by default for at most [30
/// seconds](Self::with_sync_timeout). The state it returns may be older than the API server's. Under the conditions of
/// [`Cache`], it is not older than the last write through the factory, including writes through this handle.
///
/// The answers of a few writes do not contain the object: deletions of collections, and the subresources `scale`,
/// `eviction` and `binding`. After these, the methods of this handle read the object once more to update the cache. If
/// that read fails, the write has succeeded all the same, and the watch reports it later. Writes through another
/// version of the kind, and writes to a kind whose cache has a field selector with other fields than name and namespace
/// or a [`Source`](lariat_cache::Source) of its own, are visible only once the watch reports them.
///
/// If only the metadata of a kind is cached ([`Storage::OnDemand`](lariat_cache::Storage::OnDemand), or a memory
/// budget), each object that is read is fetched from the API server; a list fetches more than a few with one request.
///
/// A handle keeps the kind's cache in use, like [`SharedController::cache`]. It reads and writes as the factory's
/// client, or with the [identity](SharedController::with_identity) of the controller it was created from.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use kube::api::DeleteParams;
/// use lariat::operator::CachedApi;
/// use lariat::{Query, SharedControllerFactory};
///
/// # async fn example(factory: SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
/// let pods = CachedApi::new(&factory.for_object::<Pod>());
/// let web = pods.list(&Query::in_namespace("shop").labels("app=web".parse()?)).await?;
/// println!("{} pods", web.len());
/// pods.delete(&"shop/web-0".parse()?, &DeleteParams::default()).await?;
/// # Ok(()) }
/// ```
pub struct CachedApi<K> {
    cache: Cache<K>,
    client: Arc<KindClient>,
    /// The client of a call, if the handle is bound to one.
    of_call: Option<Client>,
    /// Whether a read of an object that is not cached asks the API server.
    falls_back: bool,
    /// How long a read waits for the cache to sync.
    sync_timeout: Duration,
    /// The field manager of writes without parameters; none for the client's default.
    manager: Option<Arc<str>>,
}

impl<K: View> CachedApi<K> {
    /// Creates a handle for the kind of a controller.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use lariat::SharedControllerFactory;
    /// use lariat::operator::CachedApi;
    ///
    /// # fn example(factory: SharedControllerFactory) {
    /// let configs = CachedApi::new(&factory.for_object::<ConfigMap>());
    /// assert_eq!(configs.gvk().kind(), "ConfigMap");
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime while the factory runs, and this is the first use of the kind.
    #[must_use]
    pub fn new(kind: &SharedController<K>) -> Self {
        Self {
            cache: kind.cache(),
            client: kind.client(),
            of_call: None,
            falls_back: false,
            sync_timeout: TIMEOUT,
            manager: None,
        }
    }

    /// Returns this handle with the client of a call.
    ///
    /// Its writes have the authority and the identity of the call: guards, gates, plan, and the term of the lease.
    ///
    /// A handle that a reconciler captured is under the reconciler's guards on the task of the call only. Bind it
    /// before it is moved to a task that the reconciler spawns:
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// use kube::api::DeleteParams;
    /// use lariat::operator::CachedApi;
    /// use lariat::{HandlerResult, Outcome, Reconcile};
    ///
    /// async fn reap(cx: Reconcile<ConfigMap>, pods: CachedApi<Pod>) -> HandlerResult {
    ///     let (pods, key) = (pods.within(&cx), cx.key().clone());
    ///     tokio::spawn(async move { pods.delete(&key, &DeleteParams::default()).await });
    ///     Ok(Outcome::done())
    /// }
    /// # let _ = reap;
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Context::client`].
    #[must_use]
    pub fn within<V: View>(&self, cx: &Context<V>) -> Self {
        Self {
            of_call: Some(cx.client()),
            ..self.clone()
        }
    }

    /// Sets how long reads wait for the cache to sync (default 30 seconds).
    ///
    /// Zero means not to wait. The time is measured once for the kind, not for each read: it starts with the first
    /// read, through any handle, that found the cache not synced. Later reads fail immediately with
    /// [`ApiError::NotSynced`], which says what the cache waits for. So a forbidden list delays only the first reader.
    ///
    /// A handler that returns this error is retried, and occupies no worker until then.
    #[must_use]
    pub fn with_sync_timeout(self, sync_timeout: Duration) -> Self {
        Self {
            sync_timeout,
            ..self
        }
    }

    /// Asks the API server for objects that the cache does not have.
    ///
    /// By default an object that is not cached counts as not existing. Use the fallback for kinds of which only a
    /// [selection](lariat_cache::Selection) is cached, and to find objects that another client has just created. Lists
    /// are still read from the cache.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # use lariat::SharedControllerFactory;
    /// # use lariat::operator::CachedApi;
    /// # async fn example(factory: SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// let secrets = CachedApi::new(&factory.for_object::<Secret>()).with_fallback();
    /// let token = secrets.get_opt(&"shop/token".parse()?).await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with_fallback(self) -> Self {
        Self {
            falls_back: true,
            ..self
        }
    }

    /// Sets the field manager of the writes that take no parameters.
    ///
    /// These are [`create`](Self::create), [`replace`](Self::replace), and [`create_or_update`](Self::create_or_update)
    /// and its relatives. By default the API server derives the field manager from the client's user agent. The handles
    /// of an operator ([`Operator::api`](crate::Operator::api)) have the operator's name.
    #[must_use]
    pub fn with_field_manager(self, manager: &str) -> Self {
        let manager = Some(manager.into());
        Self { manager, ..self }
    }

    pub(super) fn manager(&self) -> Option<&str> {
        self.manager.as_deref()
    }

    pub(super) fn falls_back(&self) -> bool {
        self.falls_back
    }

    /// Returns the parameters of a write that takes none from its caller.
    fn params(&self) -> PostParams {
        PostParams {
            field_manager: self.manager().map(ToOwned::to_owned),
            ..PostParams::default()
        }
    }

    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        self.cache.gvk()
    }

    /// Returns the cache the handle reads.
    #[must_use]
    pub fn cache(&self) -> &Cache<K> {
        &self.cache
    }

    /// Waits until the cache is synced.
    pub(super) async fn synced(&self) -> Result<&Cache<K>, ApiError> {
        match self.cache.readable_within(self.sync_timeout).await {
            Some(true) => Ok(&self.cache),
            // The reason of a kind that cannot be watched is in its status.
            Some(false) if self.cache.status().phase == Phase::Unwatchable => {
                Err(self.not_synced())
            }
            Some(false) => Err(ApiError::not_served(self.gvk())),
            None => Err(self.not_synced()),
        }
    }

    fn not_synced(&self) -> ApiError {
        let status = self.cache.status();
        ApiError::NotSynced {
            gvk: status.gvk,
            after: self.sync_timeout,
            phase: status.phase,
            reason: status.last_error,
        }
    }

    /// Fetches the content of an object of which only metadata is cached.
    async fn load(&self, cache: &Cache<K>, key: &ObjectKey) -> Result<Option<Arc<K>>, ApiError> {
        let object = cache.load(key).await.map_err(Box::new)?;
        let read = |object| cache.store().read(&object, self.gvk());
        Ok(object.map(read).transpose()?)
    }

    async fn resource(&self) -> Result<ResourceKind, ApiError> {
        Ok(self.client.resource().await?)
    }

    /// Returns the objects that a query selects, in key order.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use lariat::Query;
    /// # use lariat::operator::{ApiError, CachedApi};
    /// # async fn example(pods: CachedApi<Pod>) -> Result<(), ApiError> {
    /// let pods = pods.list(&Query::in_namespace("shop")).await?;
    /// println!("{} pods", pods.len());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The kind is not served, its cache does not sync in time, an object does not decode as `K`, or content that is
    /// not cached cannot be fetched. Use [`Cache::select`] for a list that skips objects which do not decode and
    /// reports an error for each.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn list(&self, query: &Query) -> Result<Vec<Arc<K>>, ApiError> {
        let cache = self.synced().await?;
        let read = |objects: Vec<_>| -> Result<Vec<Arc<K>>, _> {
            let read = |object| cache.store().read(object, self.gvk());
            objects.iter().map(read).collect()
        };
        match read(cache.store().select(query)) {
            Err(error) if error.is_no_content() => {
                let loaded = cache.informer().load_all(query).await;
                Ok(read(loaded.map_err(Box::new)?)?)
            }
            objects => Ok(objects?),
        }
    }
}

impl<K: View + DeserializeOwned> CachedApi<K> {
    /// Returns an object from the cache.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use lariat::operator::CachedApi;
    /// # async fn example(configs: CachedApi<ConfigMap>) -> Result<(), Box<dyn std::error::Error>> {
    /// let colors = configs.get(&"shop/colors".parse()?).await?;
    /// println!("{:?}", colors.data);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The object does not exist ([`ApiError::is_not_found`]), or as for [`get_opt`](Self::get_opt).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn get(&self, key: &ObjectKey) -> Result<Arc<K>, ApiError> {
        let found = self.get_opt(key).await?;
        found.ok_or_else(|| ApiError::not_found(self.gvk(), key))
    }

    /// Returns an object from the cache, or `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// The kind is not served, its cache does not sync in time, the object does not decode as `K`, or a request to the
    /// API server fails ([fallback](Self::with_fallback), content that is not cached).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn get_opt(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, ApiError> {
        let cache = self.synced().await?;
        match cache.get(key) {
            Ok(Some(object)) => Ok(Some(object)),
            // The cache may have only a selection, or not yet what another client has created.
            Ok(None) if self.falls_back => self.get_live(key).await,
            Ok(None) => Ok(None),
            Err(error) if error.is_no_content() => self.load(cache, key).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Reads an object from the API server, bypassing the cache.
    ///
    /// Prefer [`get_opt`](Self::get_opt), which costs no request.
    ///
    /// # Errors
    ///
    /// The request fails, or the answer does not decode as `K`. An object that does not exist is `Ok(None)`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn get_live(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, ApiError> {
        match self.get_text(key).await {
            Ok(answer) => Ok(Some(Arc::new(self.read("get", key, &answer)?))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates an object in the namespace of its metadata.
    ///
    /// With a `generateName`, the returned object has the generated name.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Namespace;
    /// # use kube::api::ObjectMeta;
    /// # use lariat::operator::{ApiError, CachedApi};
    /// # async fn example(namespaces: CachedApi<Namespace>) -> Result<(), ApiError> {
    /// let metadata = ObjectMeta { name: Some("shop".to_owned()), ..ObjectMeta::default() };
    /// match namespaces.create(&Namespace { metadata, ..Namespace::default() }).await {
    ///     Err(error) if error.is_already_exists() => println!("it exists already"),
    ///     created => println!("{:?}", created?.metadata.uid),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The object exists already ([`ApiError::is_already_exists`]), a namespaced object has no namespace, or the API
    /// server refuses it.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the object may have been created.
    pub async fn create(&self, object: &K) -> Result<K, ApiError>
    where
        K: Serialize + kube::Resource,
    {
        let key = key_of(object);
        let answer = self.post(&key, object).await?;
        self.read("create", &key, &answer)
    }

    /// Creates an object, and returns the text of the answer.
    pub(super) async fn post<B: Serialize>(
        &self,
        key: &ObjectKey,
        object: &B,
    ) -> Result<String, ApiError> {
        let body = self.body(key, object)?;
        let request = self.collection(key).await?.create(&self.params(), body);
        self.answer("create", key, request).await
    }

    /// Replaces an object, and returns the text of the answer.
    pub(super) async fn put<B: Serialize>(
        &self,
        key: &ObjectKey,
        object: &B,
    ) -> Result<String, ApiError> {
        let body = self.body(key, object)?;
        self.text("update", key, |request, name| {
            request.replace(name, &self.params(), body)
        })
        .await
    }

    /// Patches an object, and returns the text of the answer.
    pub(super) async fn patch_text<P: Serialize>(
        &self,
        key: &ObjectKey,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<String, ApiError> {
        self.text("patch", key, |request, name| {
            request.patch(name, params, patch)
        })
        .await
    }

    /// Reads an object from the API server, and returns the text of the answer.
    pub(super) async fn get_text(&self, key: &ObjectKey) -> Result<String, ApiError> {
        self.text("get", key, |request, name| {
            request.get(name, &GetParams::default())
        })
        .await
    }

    /// Replaces an object.
    ///
    /// If the metadata has a resource version, the API server replaces only that state and refuses any other with a
    /// conflict. Without one, the last writer wins. For a read, a change and a retry on conflicts in one call, see
    /// [`create_or_update`](Self::create_or_update).
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use lariat::operator::CachedApi;
    /// # async fn example(configs: CachedApi<ConfigMap>) -> Result<(), Box<dyn std::error::Error>> {
    /// let cached = configs.get(&"shop/colors".parse()?).await?;
    /// let mut colors = ConfigMap::clone(&cached);
    /// colors.data.get_or_insert_default().insert("sky".to_owned(), "blue".to_owned());
    /// configs.replace(&colors).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The object has changed since it was read ([`ApiError::is_conflict`]), does not exist, or the API server refuses
    /// the new state.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the object may have been replaced.
    pub async fn replace(&self, object: &K) -> Result<K, ApiError>
    where
        K: Serialize + kube::Resource,
    {
        let key = key_of(object);
        let answer = self.put(&key, object).await?;
        self.read("update", &key, &answer)
    }

    /// Replaces the status of an object; otherwise as [`replace`](Self::replace).
    ///
    /// # Errors
    ///
    /// As for [`replace`](Self::replace).
    ///
    /// # Cancel safety
    ///
    /// As for [`replace`](Self::replace).
    pub async fn replace_status(&self, object: &K) -> Result<K, ApiError>
    where
        K: Serialize + kube::Resource,
    {
        let key = key_of(object);
        let body = self.body(&key, object)?;
        self.send("update", &key, |request, name| {
            request.replace_subresource("status", name, &self.params(), body)
        })
        .await
    }

    /// Patches an object.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Node;
    /// # use kube::api::{Patch, PatchParams};
    /// # use lariat::operator::CachedApi;
    /// # use serde_json::json;
    /// # async fn example(nodes: CachedApi<Node>) -> Result<(), Box<dyn std::error::Error>> {
    /// let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    /// nodes.patch(&"node-1".parse()?, &PatchParams::default(), &cordon).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The object does not exist, or the API server refuses the patch.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the object may have been patched.
    pub async fn patch<P: Serialize>(
        &self,
        key: &ObjectKey,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, ApiError> {
        let answer = self.patch_text(key, params, patch).await?;
        self.read("patch", key, &answer)
    }

    /// Patches the status of an object.
    ///
    /// # Errors
    ///
    /// As for [`patch`](Self::patch).
    ///
    /// # Cancel safety
    ///
    /// As for [`patch`](Self::patch).
    pub async fn patch_status<P: Serialize>(
        &self,
        key: &ObjectKey,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, ApiError> {
        self.send("patch", key, |request, name| {
            request.patch_subresource("status", name, params, patch)
        })
        .await
    }

    /// Deletes an object.
    ///
    /// The object may still exist when this returns: the API server removes it once its finalizers are removed and its
    /// grace period has ended.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube::api::DeleteParams;
    /// # use lariat::operator::CachedApi;
    /// # async fn example(pods: CachedApi<Pod>) -> Result<(), Box<dyn std::error::Error>> {
    /// match pods.delete(&"shop/web-0".parse()?, &DeleteParams::default()).await {
    ///     Err(error) if error.is_not_found() => {}
    ///     deleted => deleted?,
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The object does not exist ([`ApiError::is_not_found`]), or a precondition does not hold.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the object may have been deleted.
    pub async fn delete(&self, key: &ObjectKey, params: &DeleteParams) -> Result<(), ApiError> {
        let (request, name) = (self.object(key).await?, path_segment(key.name()));
        let request = request.delete(&name, params);
        self.answer("delete", key, request).await.map(drop)
    }

    /// Sends a request for one object, and decodes the answer.
    pub(super) async fn send(
        &self,
        verb: &'static str,
        key: &ObjectKey,
        build: impl FnOnce(Request, &str) -> Built,
    ) -> Result<K, ApiError> {
        let answer = self.text(verb, key, build).await?;
        self.read(verb, key, &answer)
    }

    /// Sends a request for one object, and returns the text of the answer.
    ///
    /// The name is escaped as a path segment.
    pub(super) async fn text(
        &self,
        verb: &'static str,
        key: &ObjectKey,
        build: impl FnOnce(Request, &str) -> Built,
    ) -> Result<String, ApiError> {
        let request = build(self.object(key).await?, &path_segment(key.name()));
        let answer = self.answer(verb, key, request).await?;
        let answered = RawObject::key_of(answer.as_bytes());
        // An answer about another object must not be returned as the wanted one, and must not reach the cache under the
        // wrong key. An answer that is no object at all fails where it is decoded, with an error that says what does
        // not fit. A subresource may answer with a Status, which has no name.
        let is_other = |other: &ObjectKey| !other.name().is_empty() && !self.is_of(other, key);
        if let Some(other) = answered.filter(is_other) {
            return Err(ApiError::another(verb, self.gvk(), key, &other));
        }
        Ok(answer)
    }

    /// Returns whether an answer is about the object of a key.
    ///
    /// Cluster-scoped objects have no namespace, so the namespace of the key is ignored for them.
    fn is_of(&self, answered: &ObjectKey, key: &ObjectKey) -> bool {
        answered.name() == key.name()
            && answered
                .namespace()
                .is_none_or(|namespace| key.namespace() == Some(namespace))
    }

    pub(super) async fn answer(
        &self,
        verb: &'static str,
        key: &ObjectKey,
        request: Built,
    ) -> Result<String, ApiError> {
        let client = self.of_call.clone();
        let client = client.unwrap_or_else(|| self.client.client());
        let answer = Sender::new(client).text(request).await;
        answer.map_err(|source| ApiError::refused(verb, self.gvk(), key, source))
    }

    pub(super) fn read(
        &self,
        verb: &'static str,
        key: &ObjectKey,
        answer: &str,
    ) -> Result<K, ApiError> {
        self.decode(verb, key, answer)
    }

    pub(super) fn decode<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        key: &ObjectKey,
        answer: &str,
    ) -> Result<T, ApiError> {
        serde_json::from_str(answer).map_err(|error| self.misfit(verb, key, &error))
    }

    /// Returns the error of a value that does not fit its type, without the value.
    pub(super) fn misfit(
        &self,
        verb: &'static str,
        key: &ObjectKey,
        error: &serde_json::Error,
    ) -> ApiError {
        let error = without_values(&error.to_string());
        ApiError::unreadable(verb, self.gvk(), key, error)
    }

    /// Builds a request for one object.
    async fn object(&self, key: &ObjectKey) -> Result<Request, ApiError> {
        match ApiError::of_name(self.gvk(), key) {
            Some(error) => Err(error),
            None => self.collection(key).await,
        }
    }

    /// Builds a request for the collection that contains an object.
    async fn collection(&self, key: &ObjectKey) -> Result<Request, ApiError> {
        let resource = self.resource().await?;
        // Without a namespace the path would be that of all namespaces.
        if resource.scope() == Scope::Namespaced && key.namespace().is_none() {
            return Err(ApiError::no_namespace(self.gvk(), key));
        }
        self.collection_of(key, key.namespace()).await
    }

    /// Builds a request for the objects of one namespace, or of all namespaces.
    ///
    /// `key` is used in errors only.
    pub(super) async fn collection_of(
        &self,
        key: &ObjectKey,
        namespace: Option<&str>,
    ) -> Result<Request, ApiError> {
        if let Some(error) = ApiError::of_namespace(self.gvk(), key) {
            return Err(error);
        }
        let resource = self.resource().await?;
        Ok(Request::new(resource.collection_path(namespace)))
    }

    pub(super) fn body<B: Serialize>(
        &self,
        key: &ObjectKey,
        object: &B,
    ) -> Result<Vec<u8>, ApiError> {
        serde_json::to_vec(object).map_err(|source| {
            ApiError::refused("encode", self.gvk(), key, kube::Error::SerdeError(source))
        })
    }
}

/// Returns the key in an object's metadata, or one with its `generateName`.
pub(super) fn key_of<K: kube::Resource>(object: &K) -> ObjectKey {
    let meta = object.meta();
    let name = meta
        .name
        .as_deref()
        .or(meta.generate_name.as_deref())
        .unwrap_or_default();
    match &meta.namespace {
        Some(namespace) => ObjectKey::namespaced(namespace, name),
        None => ObjectKey::cluster(name),
    }
}

impl<K> Clone for CachedApi<K> {
    fn clone(&self) -> Self {
        Self {
            cache: self.cache.clone(),
            client: Arc::clone(&self.client),
            of_call: self.of_call.clone(),
            falls_back: self.falls_back,
            sync_timeout: self.sync_timeout,
            manager: self.manager.clone(),
        }
    }
}

impl<K: View> fmt::Debug for CachedApi<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedApi")
            .field("kind", self.gvk())
            .field("falls_back", &self.falls_back)
            .finish_non_exhaustive()
    }
}
