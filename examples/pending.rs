//! Stands in for what the library is about to have.
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use lariat::View;
use lariat::prelude::*;

pub(crate) trait Pending {
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
