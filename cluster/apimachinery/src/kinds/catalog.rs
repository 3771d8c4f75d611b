//! An immutable set of served resources.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::resource::{Resource, TableId};
use super::version::version_order;

/// An immutable set of served resources.
///
/// [`Kinds`](super::Kinds) has the current one, and replaces it when a CRD changes.
///
/// ```
/// use lariat_apimachinery::kinds::{Kinds, TableId};
///
/// // A server has one table for each resource; here one is enough.
/// let catalog = Kinds::new(|_| TableId(0)).catalog();
/// assert!(catalog.has_version("apps", "v1"));
/// assert!(catalog.resources("", "v1").any(|resource| resource.kind == "Pod"));
/// assert!(catalog.resource("apps", "v1", "widgets").is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// By group and version, the core group first.
    // In two levels, so that a lookup, of which every request makes several, allocates no key.
    groups: BTreeMap<String, BTreeMap<String, Version>>,
    /// The served versions of each table and group, computed at first use.
    served: Arc<OnceLock<Served>>,
    /// The OpenAPI document of all of them.
    whole: Arc<OpenApiDocument>,
}

/// Versions by the table of a resource and its group.
type Served = HashMap<(TableId, String), Vec<String>>;

/// The resources of one version.
#[derive(Debug, Clone, Default)]
struct Version {
    /// In the order of registration.
    resources: Vec<Arc<Resource>>,
    /// The OpenAPI document of these resources.
    document: Arc<OpenApiDocument>,
}

/// A document, of which each part is created at the first request for it.
#[derive(Debug, Default)]
pub struct OpenApiDocument {
    /// A digest of all that its content depends on, as an `ETag` has it.
    pub digest: OnceLock<String>,
    /// The document as JSON, compressed.
    pub json: OnceLock<Bytes>,
    /// The document as protobuf, compressed.
    pub protobuf: OnceLock<Bytes>,
}

impl Catalog {
    pub(super) fn add(&mut self, resource: Arc<Resource>) {
        let group = self.groups.entry(resource.group.clone()).or_default();
        let version = group.entry(resource.version.clone()).or_default();
        version.resources.push(resource);
        // New cells instead of cleared ones: a request that holds the old catalog goes on with the documents that
        // belong to it.
        version.document = Arc::default();
        self.whole = Arc::default();
        self.served = Arc::default();
    }

    pub(super) fn remove(&mut self, table: TableId) {
        // Discovery shows no version without resources.
        self.groups.retain(|_, group| {
            group.retain(|_, version| {
                let before = version.resources.len();
                version.resources.retain(|resource| resource.table != table);
                if version.resources.len() != before {
                    version.document = Arc::default();
                }
                !version.resources.is_empty()
            });
            !group.is_empty()
        });
        self.whole = Arc::default();
        self.served = Arc::default();
    }

    /// Returns whether any resource of a group is served.
    #[must_use]
    pub fn has_group(&self, group: &str) -> bool {
        self.groups.contains_key(group)
    }

    /// Returns whether any resource of a version is served.
    #[must_use]
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        self.version(group, version).is_some()
    }

    /// Returns the groups in alphabetical order, without the core group.
    #[must_use]
    pub fn groups(&self) -> Vec<&str> {
        let groups = self.groups.keys().map(String::as_str);
        groups.filter(|group| !group.is_empty()).collect()
    }

    /// Returns the versions of a group, the preferred one first.
    #[must_use]
    pub fn versions(&self, group: &str) -> Vec<&str> {
        let versions = self.groups.get(group).into_iter();
        let mut versions: Vec<&str> = versions
            .flat_map(|group| group.keys().map(String::as_str))
            .collect();
        versions.sort_by_key(|version| std::cmp::Reverse(version_order(version)));
        versions
    }

    /// Iterates over the resources of a version, in the order of registration.
    pub fn resources(&self, group: &str, version: &str) -> impl Iterator<Item = &Arc<Resource>> {
        let version = self.version(group, version);
        version.into_iter().flat_map(|version| &version.resources)
    }

    fn version(&self, group: &str, version: &str) -> Option<&Version> {
        self.groups.get(group)?.get(version)
    }

    /// Returns the OpenAPI document of all resources.
    #[must_use]
    pub fn openapi(&self) -> &OpenApiDocument {
        &self.whole
    }

    /// Returns the OpenAPI document of a version; `None` if it is not served.
    #[must_use]
    pub fn openapi_of(&self, group: &str, version: &str) -> Option<&OpenApiDocument> {
        Some(&self.version(group, version)?.document)
    }

    /// Returns a resource by its plural name.
    #[must_use]
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources(group, version)
            .find(|resource| resource.plural == plural)
    }

    /// Iterates over every resource in every version.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let versions = self.groups.values().flat_map(BTreeMap::values);
        versions.flat_map(|version| &version.resources)
    }

    /// Returns the served versions of a resource, such as `apps/v1`.
    ///
    /// Its objects may be served by another group as well, as Events are.
    #[must_use]
    pub fn served(&self, resource: &Resource) -> &[String] {
        let served = self.served.get_or_init(|| {
            let mut served: HashMap<_, Vec<String>> = HashMap::new();
            for resource in self.all() {
                let key = (resource.table, resource.group.clone());
                let versions = served.entry(key).or_default();
                versions.push(resource.api_version());
            }
            served
        });
        let key = (resource.table, resource.group.clone());
        served.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Returns the resource that a table stores, in one of its versions.
    #[must_use]
    pub fn of_table(&self, table: TableId) -> Option<&Arc<Resource>> {
        self.all().find(|resource| resource.table == table)
    }

    /// Iterates over every resource, one version each.
    pub fn each_table(&self) -> impl Iterator<Item = &Arc<Resource>> {
        // Which version comes is left open; they store the same objects.
        let mut seen = HashSet::new();
        self.all()
            .filter(move |resource| seen.insert(resource.table))
    }
}
