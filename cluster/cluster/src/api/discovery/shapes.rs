//! The documents of discovery, whose members are in the order in which a real server writes them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use lariat_apimachinery::kinds::Resource;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::subresources::Subresource;

/// One version of a group.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupVersion {
    pub(super) group_version: String,
    pub(super) version: String,
}

/// A group: kind and version are set where the document has no other.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Group {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) api_version: Option<&'static str>,
    pub(super) name: String,
    pub(super) versions: Vec<GroupVersion>,
    pub(super) preferred_version: Option<GroupVersion>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupList {
    pub(super) kind: &'static str,
    pub(super) api_version: &'static str,
    pub(super) groups: Vec<Group>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceList<'a> {
    pub(super) kind: &'static str,
    /// The core group leaves it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) api_version: Option<&'static str>,
    pub(super) group_version: String,
    pub(super) resources: Vec<ApiResource<'a>>,
}

/// A resource or a subresource.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiResource<'a> {
    name: String,
    singular_name: &'a str,
    namespaced: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'static str>,
    kind: &'a str,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_version_hash: Option<String>,
}

impl<'a> ApiResource<'a> {
    pub(super) fn of(resource: &'a Resource, verbs: Vec<&'static str>) -> Self {
        Self {
            name: resource.plural.clone(),
            singular_name: &resource.singular,
            namespaced: resource.namespaced,
            group: None,
            version: None,
            kind: &resource.kind,
            // What is not stored cannot be watched.
            storage_version_hash: verbs.contains(&"watch").then(|| storage_hash(resource)),
            verbs,
            short_names: &resource.short_names,
            categories: &resource.categories,
        }
    }

    pub(super) fn part(resource: &'a Resource, part: Subresource) -> Self {
        let (group, version) = part.group_version.unzip();
        Self {
            name: format!("{}/{}", resource.plural, part.name),
            singular_name: "",
            namespaced: resource.namespaced,
            group,
            version,
            kind: part.kind.unwrap_or(&resource.kind),
            verbs: part.verbs.to_vec(),
            short_names: &[],
            categories: &[],
            storage_version_hash: None,
        }
    }
}

/// Returns a hash of how a resource is stored, which clients compare.
///
/// Source: `StorageVersionHash` in `k8s.io/apiserver/pkg/endpoints/discovery`.
fn storage_hash(resource: &Resource) -> String {
    let version = &resource.storage_version;
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = format!("{group}/{version}/{}", resource.kind);
    BASE64.encode(&Sha256::digest(kind.as_bytes())[..8])
}

#[cfg(test)]
mod tests {
    use lariat_apimachinery::kinds::{Kinds, TableId};

    use super::*;

    #[test]
    fn storage_hashes_are_those_of_a_real_server() {
        let kinds = Kinds::new(|_| TableId(0));
        let check = |group: &str, version: &str, plural: &str, expected: &str| {
            let catalog = kinds.catalog();
            let resource = catalog.resource(group, version, plural).unwrap();
            assert_eq!(storage_hash(resource), expected, "{plural}");
        };
        check("", "v1", "configmaps", "qFsyl6wFWjQ=");
        check("events.k8s.io", "v1", "events", "r2yiGXH7wu8=");
        check(
            "autoscaling",
            "v1",
            "horizontalpodautoscalers",
            "qwQve8ut294=",
        );
        check(
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            "jfWCUB31mvA=",
        );
    }
}
