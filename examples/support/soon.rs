//! Stands in for what the library will have.

use lariat::cache::View;
use lariat::kube::Resource;
use lariat::kube::api::{Api, Patch, PatchParams};
use lariat::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Stands in for what the library will have.
pub trait Soon {
    /// Writes the status if it differs.
    fn set_status<S: Serialize + Sync>(
        &self,
        status: &S,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;
}

impl<K> Soon for Reconcile<K>
where
    K: View
        + Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Serialize,
{
    async fn set_status<S: Serialize + Sync>(&self, status: &S) -> Result<(), HandlerError> {
        let new = serde_json::to_value(status)?;
        let old = serde_json::to_value(&**self.object())?["status"].take();
        if new == old || (old.is_null() && new == json!({})) {
            return Ok(());
        }
        let mut patch = new.clone();
        if let (Some(old), Some(patch)) = (old.as_object(), patch.as_object_mut()) {
            for key in old.keys() {
                patch.entry(key).or_insert(serde_json::Value::Null);
            }
        }
        let api: Api<K> =
            Api::namespaced(self.client(), self.key().namespace().unwrap_or_default());
        api.patch_status(
            self.key().name(),
            &PatchParams::default(),
            &Patch::Merge(json!({"status": patch})),
        )
        .await?;
        Ok(())
    }
}
