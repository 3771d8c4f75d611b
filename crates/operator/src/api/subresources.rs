//! Subresources of objects: scale, eviction, binding, status, debug containers, resources and tokens.
//!
//! The answers of `scale`, `eviction` and `binding` are not the object itself. After these the object is read once
//! more, so that the cache shows the write.

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::Binding;
use kube::api::{EvictParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use lariat_cache::View;
use lariat_core::{ObjectKey, ResourceVersion};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::api::CachedApi;
use crate::wire::{ApiError, Built};

/// The subresource of the debug containers of Pods.
const EPHEMERAL: &str = "ephemeralcontainers";

impl<K: View + DeserializeOwned> CachedApi<K> {
    /// Reads the scale of an object from the API server.
    ///
    /// # Errors
    ///
    /// The object does not exist, or its kind has no scale.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn get_scale(&self, key: &ObjectKey) -> Result<Scale, ApiError> {
        self.part("get", key, |request, name| {
            request.get_subresource("scale", name)
        })
        .await
    }

    /// Replaces the scale of an object.
    ///
    /// If `scale` has a resource version, only that state is replaced. The cache shows the object with the new number
    /// of replicas: the object is read for this, unless the watch has reported it already.
    ///
    /// # Errors
    ///
    /// The object has changed since ([`ApiError::is_conflict`]), does not exist, or its kind has no scale.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the object may have been scaled.
    pub async fn replace_scale(
        &self,
        key: &ObjectKey,
        params: &PostParams,
        scale: &Scale,
    ) -> Result<Scale, ApiError> {
        let body = self.body(key, scale)?;
        let answer = self.part("update", key, |request, name| {
            request.replace_subresource("scale", name, params, body)
        });
        self.scaled(key, answer.await?).await
    }

    /// Patches the scale of an object.
    ///
    /// Otherwise like [`replace_scale`](Self::replace_scale).
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use kube::api::{Patch, PatchParams};
    /// use lariat::operator::{ApiError, CachedApi};
    /// use serde_json::json;
    ///
    /// # async fn example(deployments: CachedApi<Deployment>) -> Result<(), Box<dyn std::error::Error>> {
    /// let three = Patch::Merge(json!({"spec": {"replicas": 3}}));
    /// deployments.patch_scale(&"shop/web".parse()?, &PatchParams::default(), &three).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`replace_scale`](Self::replace_scale).
    ///
    /// # Cancel safety
    ///
    /// As for [`replace_scale`](Self::replace_scale).
    pub async fn patch_scale<P: Serialize>(
        &self,
        key: &ObjectKey,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<Scale, ApiError> {
        let answer = self.part("patch", key, |request, name| {
            request.patch_subresource("scale", name, params, patch)
        });
        self.scaled(key, answer.await?).await
    }

    /// Evicts a Pod: deletes it if its PodDisruptionBudgets allow it.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube::api::EvictParams;
    /// # use lariat::operator::CachedApi;
    /// # async fn example(pods: CachedApi<Pod>) -> Result<(), Box<dyn std::error::Error>> {
    /// pods.evict(&"shop/web-0".parse()?, &EvictParams::default()).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// A budget does not allow it now (429, which the client retries for as long as the API server asks for), or the
    /// Pod does not exist.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the Pod may have been evicted.
    pub async fn evict(&self, key: &ObjectKey, params: &EvictParams) -> Result<(), ApiError> {
        let mut eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": key.name(), "namespace": key.namespace()},
        });
        if let Some(options) = &params.delete_options {
            eviction["deleteOptions"] = json!(options);
        }
        // A dry run leaves the object as the cache has it, so the read is saved.
        let is_dry_run = params.post_options.dry_run;
        self.act("eviction", key, &params.post_options, &eviction)
            .await?;
        self.show(key, is_dry_run).await;
        Ok(())
    }

    /// Binds a Pod to a node, as schedulers do.
    ///
    /// The node is the target of the binding. The name and namespace of the binding are overwritten by those of the
    /// key.
    ///
    /// # Errors
    ///
    /// The Pod does not exist, is being deleted, or is bound already ([`ApiError::is_conflict`]).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the Pod may have been bound.
    pub async fn bind(
        &self,
        key: &ObjectKey,
        params: &PostParams,
        binding: &Binding,
    ) -> Result<(), ApiError> {
        let mut binding = binding.clone();
        // The API server refuses a binding whose name differs from that in the path.
        binding.metadata.name = Some(key.name().to_owned());
        binding.metadata.namespace = key.namespace().map(str::to_owned);
        self.act("binding", key, params, &binding).await?;
        self.show(key, params.dry_run).await;
        Ok(())
    }

    /// Replaces the debug containers of a Pod; existing ones cannot be removed.
    ///
    /// # Errors
    ///
    /// The Pod has changed since ([`ApiError::is_conflict`]), does not exist, or the API server refuses the containers.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the containers may have been added.
    pub async fn replace_ephemeral_containers(
        &self,
        params: &PostParams,
        pod: &K,
    ) -> Result<K, ApiError>
    where
        K: Serialize + kube::Resource,
    {
        self.replace_part(EPHEMERAL, params, pod).await
    }

    /// Patches the debug containers of a Pod.
    ///
    /// # Errors
    ///
    /// As for [`replace_ephemeral_containers`](Self::replace_ephemeral_containers).
    ///
    /// # Cancel safety
    ///
    /// As for [`replace_ephemeral_containers`](Self::replace_ephemeral_containers).
    pub async fn patch_ephemeral_containers<P: Serialize>(
        &self,
        key: &ObjectKey,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, ApiError> {
        self.patch_part(EPHEMERAL, key, params, patch).await
    }

    /// Replaces the resources of a Pod's containers without restarting the Pod.
    ///
    /// # Errors
    ///
    /// The Pod has changed since ([`ApiError::is_conflict`]), does not exist, or the API server refuses the resources.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the Pod may have been resized.
    pub async fn replace_resize(&self, params: &PostParams, pod: &K) -> Result<K, ApiError>
    where
        K: Serialize + kube::Resource,
    {
        self.replace_part("resize", params, pod).await
    }

    /// Patches the resources of a Pod's containers.
    ///
    /// Otherwise like [`replace_resize`](Self::replace_resize).
    ///
    /// # Errors
    ///
    /// As for [`replace_resize`](Self::replace_resize).
    ///
    /// # Cancel safety
    ///
    /// As for [`replace_resize`](Self::replace_resize).
    pub async fn patch_resize<P: Serialize>(
        &self,
        key: &ObjectKey,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, ApiError> {
        self.patch_part("resize", key, params, patch).await
    }

    /// Requests a token for a ServiceAccount.
    ///
    /// The ServiceAccount itself does not change, so neither does the cache.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ServiceAccount;
    /// # use kube::api::PostParams;
    /// # use lariat::operator::CachedApi;
    /// # use serde_json::json;
    /// # async fn example(accounts: CachedApi<ServiceAccount>) -> Result<(), Box<dyn std::error::Error>> {
    /// let request = serde_json::from_value(json!({"spec": {"audiences": ["vault"]}}))?;
    /// let answer = accounts.create_token_request(&"shop/web".parse()?, &PostParams::default(), &request).await?;
    /// assert!(answer.status.is_some());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The ServiceAccount does not exist, or the API server refuses the request.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, a token may have been issued.
    pub async fn create_token_request(
        &self,
        key: &ObjectKey,
        params: &PostParams,
        request: &TokenRequest,
    ) -> Result<TokenRequest, ApiError> {
        let body = self.body(key, request)?;
        self.part("create", key, |request, name| {
            request.create_subresource("token", name, params, body)
        })
        .await
    }

    /// Reads an object from the API server, through its status subresource.
    ///
    /// The answer is the whole object, but the request needs permission for the status only.
    ///
    /// # Errors
    ///
    /// The object does not exist, or its kind has no status subresource.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn get_status(&self, key: &ObjectKey) -> Result<K, ApiError> {
        self.part("get", key, |request, name| {
            request.get_subresource("status", name)
        })
        .await
    }

    async fn replace_part(
        &self,
        part: &'static str,
        params: &PostParams,
        object: &K,
    ) -> Result<K, ApiError>
    where
        K: Serialize + kube::Resource,
    {
        let key = super::api::key_of(object);
        let body = self.body(&key, object)?;
        self.send("update", &key, |request, name| {
            request.replace_subresource(part, name, params, body)
        })
        .await
    }

    async fn patch_part<P: Serialize>(
        &self,
        part: &'static str,
        key: &ObjectKey,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, ApiError> {
        self.send("patch", key, |request, name| {
            request.patch_subresource(part, name, params, patch)
        })
        .await
    }

    /// Creates a subresource whose answer is a Status, not an object.
    async fn act<B: Serialize>(
        &self,
        part: &'static str,
        key: &ObjectKey,
        params: &PostParams,
        body: &B,
    ) -> Result<(), ApiError> {
        let body = self.body(key, body)?;
        let answer = self.text("create", key, |request, name| {
            request.create_subresource(part, name, params, body)
        });
        answer.await.map(drop)
    }

    /// Sends a request for a subresource, and decodes the answer.
    async fn part<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        key: &ObjectKey,
        build: impl FnOnce(Request, &str) -> Built,
    ) -> Result<T, ApiError> {
        let text = self.text(verb, key, build).await?;
        self.decode(verb, key, &text)
    }

    /// Shows a scaled object in the cache, unless the watch has reported it already.
    async fn scaled(&self, key: &ObjectKey, scale: Scale) -> Result<Scale, ApiError> {
        let version = scale
            .metadata
            .resource_version
            .as_deref()
            .unwrap_or_default();
        let version = ResourceVersion::new(version);
        let cached = self.cache().store().get(key);
        let is_shown = cached.is_some_and(|cached| {
            // The answer carries the resource version of the object, so a cached state of at least that version has the
            // new scale, and the read can be saved.
            let order = cached.version().compare(&version);
            order.is_some_and(std::cmp::Ordering::is_ge)
        });
        self.show(key, is_shown).await;
        Ok(scale)
    }

    /// Reads an object again, so that the cache shows what a write did to it.
    ///
    /// The write has succeeded, so a failure is only logged: the watch reports the change later.
    async fn show(&self, key: &ObjectKey, is_shown: bool) {
        if is_shown {
            return;
        }
        if let Err(error) = self.cache().informer().refresh(key).await {
            tracing::debug!(kind = %self.gvk(), %key, %error, "the watch will show what was written");
        }
    }
}
