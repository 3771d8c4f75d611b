//! Stands in for what the library is about to have.
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    reason = "temporary"
)]
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::api::{Api, Patch, PatchParams};
use lariat::prelude::*;
use lariat::{Reconciler, View};
use serde::Serialize;
use serde::de::DeserializeOwned;

#[derive(Debug)]
pub struct Event(bool, String);
impl Event {
    pub fn normal(_: &str, note: impl Into<String>) -> Self {
        Self(false, note.into())
    }
    pub fn warning(_: &str, note: impl Into<String>) -> Self {
        Self(true, note.into())
    }
    pub fn is_warning(&self) -> bool {
        self.0
    }
    pub fn note(&self) -> &str {
        &self.1
    }
}
pub trait Pending {
    fn event(&self, _: Event) {}
    fn set_status<S: Serialize + Sync>(
        &self,
        status: &S,
    ) -> impl Future<Output = Result<(), kube::Error>> + Send;
    fn owner_reference(&self) -> OwnerReference;
}
impl<K> Pending for Reconcile<K>
where
    K: View
        + Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    async fn set_status<S: Serialize + Sync>(&self, status: &S) -> Result<(), kube::Error> {
        let raw: serde_json::Value =
            serde_json::from_slice(&self.raw().json().unwrap_or_default()).unwrap_or_default();
        let status = serde_json::to_value(status).unwrap_or_default();
        if raw["status"] == status {
            return Ok(());
        }
        let api: Api<K> =
            Api::namespaced(self.client(), self.key().namespace().unwrap_or_default());
        api.patch_status(
            self.key().name(),
            &PatchParams::default(),
            &Patch::Merge(serde_json::json!({"status": status})),
        )
        .await?;
        Ok(())
    }
    fn owner_reference(&self) -> OwnerReference {
        self.object().controller_owner_ref(&()).unwrap_or_default()
    }
}
pub trait PendingReconciler {
    fn report_errors(self, condition: &str) -> Self;
}
impl<K> PendingReconciler for Reconciler<K> {
    fn report_errors(self, _: &str) -> Self {
        self
    }
}
#[derive(Debug)]
pub struct Finalizer;
impl Finalizer {
    pub fn new(_: &str) -> Self {
        Self
    }
}
pub trait PendingFinalizer<K>: Sized {
    fn finalizer<F, Fut>(self, _: Finalizer, _: F) -> Self
    where
        F: Fn(Reconcile<K>) -> Fut,
    {
        self
    }
}
impl<K> PendingFinalizer<K> for Reconciler<K> {}
