//! Deletions of collections, and patches of metadata only.

use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::{ObjectMeta, PartialObjectMeta};
use lariat_cache::View;
use lariat_core::{LabelSelector, ObjectKey, Uid};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::api::CachedApi;
use crate::wire::ApiError;

/// The part of the answer to a collection deletion that names the deleted objects.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Deleted {
    items: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    metadata: ObjectMeta,
}

impl<K: View + DeserializeOwned> CachedApi<K> {
    /// Deletes the objects that the selectors of `list` match, in one request.
    ///
    /// `namespace` is the namespace to delete in; with `None` it is all namespaces, which the API server refuses for
    /// namespaced kinds. Returns how many objects the selectors matched. Objects with finalizers or a grace period may
    /// still exist when this returns. The objects that are left are listed to update the cache.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::batch::v1::Job;
    /// # use kube::api::{DeleteParams, ListParams};
    /// # use lariat::operator::{ApiError, CachedApi};
    /// # async fn example(jobs: CachedApi<Job>) -> Result<(), ApiError> {
    /// let nightly = ListParams::default().labels("run=nightly");
    /// let deleted = jobs.delete_collection(Some("shop"), &DeleteParams::background(), &nightly).await?;
    /// println!("{deleted} jobs deleted");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The API server refuses the deletion, perhaps after some objects were deleted.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, objects may have been deleted.
    pub async fn delete_collection(
        &self,
        namespace: Option<&str>,
        params: &DeleteParams,
        list: &ListParams,
    ) -> Result<usize, ApiError> {
        // There is no single object; errors name all objects of the namespace as `NAMESPACE/*`.
        let all = ObjectKey::namespaced(namespace.unwrap_or_default(), "*");
        let request = self.collection_of(&all, namespace).await?;
        let request = request.delete_collection(params, list);
        let answer = self.answer("deletecollection", &all, request).await?;
        let deleted: Deleted = serde_json::from_str(&answer).unwrap_or_default();
        let uid = |item: Item| item.metadata.uid.map(|uid| Uid::new(&uid));
        let deleted = deleted.items.into_iter().flatten().filter_map(uid);
        let deleted: Vec<Uid> = deleted.collect();
        if !params.dry_run {
            self.show_all(namespace, list, &deleted).await;
        }
        Ok(deleted.len())
    }

    /// Lists the objects that are left, so that the cache shows the deletion.
    ///
    /// The deletion has succeeded, so a failure is only logged: the watch reports the deletions later.
    async fn show_all(&self, namespace: Option<&str>, list: &ListParams, deleted: &[Uid]) {
        let labels = list.label_selector.as_deref().unwrap_or_default();
        // Labels that this parser does not understand widen the list to all objects of the namespace.
        let labels: LabelSelector = labels.parse().unwrap_or_default();
        let informer = self.cache().informer();
        if let Err(error) = informer.refresh_all(namespace, &labels, deleted).await {
            tracing::debug!(kind = %self.gvk(), %error, "the watch will show what was deleted");
        }
    }

    /// Patches the metadata of an object, and returns the new metadata.
    ///
    /// The patch must contain nothing but metadata. If the cache holds the whole object, the API server is asked for
    /// the whole object, because a later read must not be older than this write. Otherwise the answer is the metadata
    /// alone.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube::api::{Patch, PatchParams};
    /// # use lariat::operator::CachedApi;
    /// # use serde_json::json;
    /// # async fn example(configs: CachedApi<ConfigMap>) -> Result<(), Box<dyn std::error::Error>> {
    /// let label = Patch::Merge(json!({"metadata": {"labels": {"team": "red"}}}));
    /// configs.patch_metadata(&"shop/colors".parse()?, &PatchParams::default(), &label).await?;
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
    pub async fn patch_metadata<P: Serialize>(
        &self,
        key: &ObjectKey,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<PartialObjectMeta<K>, ApiError> {
        let cached = self.cache().store().get(key);
        let is_whole = cached.is_some_and(|cached| cached.has_content());
        let text = if is_whole {
            self.patch_text(key, params, patch).await?
        } else {
            let text = self.text("patch", key, |request, name| {
                request.patch_metadata(name, params, patch)
            });
            text.await?
        };
        self.decode("patch", key, &text)
    }
}
