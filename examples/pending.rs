//! Stands in for what the library is about to have.
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use lariat::View;
use lariat::prelude::*;

pub(crate) struct Event(bool, String);
impl Event {
    pub(crate) fn normal(_: &str, note: impl Into<String>) -> Self {
        Self(false, note.into())
    }
    pub(crate) fn warning(_: &str, note: impl Into<String>) -> Self {
        Self(true, note.into())
    }
    pub(crate) fn is_warning(&self) -> bool {
        self.0
    }
    pub(crate) fn note(&self) -> &str {
        &self.1
    }
}
pub(crate) trait Pending {
    fn event(&self, _: Event) {}
    fn owner_reference(&self) -> OwnerReference;
}
impl<K> Pending for Reconcile<K>
where
    K: View + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    fn owner_reference(&self) -> OwnerReference {
        self.object().controller_owner_ref(&()).unwrap_or_default()
    }
}
