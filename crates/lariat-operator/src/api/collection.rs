//! Deletes collections, and patches metadata.

use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::{ObjectMeta, PartialObjectMeta};
use lariat_cache::View;
use lariat_core::{LabelSelector, ObjectKey, Uid};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::api::CachedApi;
use crate::wire::ApiError;

/// What the answer to a deletion says of the deleted objects.
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
    /// Deletes the objects of a namespace, or of all, that the selectors of `list` match.
    ///
    /// Returns how many there were. When this returns, some may still exist: those with finalizers or a grace period.
    /// The cache shows what is left, which is listed for this. For `None` the API server refuses to delete objects of
    /// namespaced kinds.
    ///
    /// # Errors
    ///
    /// The deletion is refused. Some objects may have been deleted.
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
        // For errors: all objects of the namespace.
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

    async fn show_all(&self, namespace: Option<&str>, list: &ListParams, deleted: &[Uid]) {
        let labels = list.label_selector.as_deref().unwrap_or_default();
        // Labels that cannot be parsed here count as all labels.
        let labels: LabelSelector = labels.parse().unwrap_or_default();
        let informer = self.cache().informer();
        if let Err(error) = informer.refresh_all(namespace, &labels, deleted).await {
            tracing::debug!(kind = %self.gvk(), %error, "the watch will show what was deleted");
        }
    }

    /// Patches the metadata of an object, and returns the new metadata.
    ///
    /// The patch must not contain anything else. The answer is the metadata alone, unless the content of the object is
    /// cached, which a read must show as of this write.
    ///
    /// # Errors
    ///
    /// The object does not exist, or the patch is refused.
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
