//! Discovery documents of one group and version.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
use lariat_core::{Gvk, ResourceKind, Scope};

/// Returns the resources of a document that are not subresources.
pub(super) fn read(text: &str) -> Result<Vec<ResourceKind>, serde_json::Error> {
    let list: APIResourceList = serde_json::from_str(text)?;
    let (group, version) = list
        .group_version
        .split_once('/')
        .unwrap_or(("", &list.group_version));
    let resources = list
        .resources
        .iter()
        .filter(|resource| !resource.name.contains('/'));
    let resource = |resource: &APIResource| {
        let gvk = Gvk::new(group, version, &resource.kind);
        let scope = match resource.namespaced {
            true => Scope::Namespaced,
            false => Scope::Cluster,
        };
        ResourceKind::new(gvk, &resource.name, scope)
    };
    Ok(resources.map(resource).collect())
}
