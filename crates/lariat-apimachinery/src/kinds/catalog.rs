//! An immutable set of served resources.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::resource::{Resource, TableId};
use super::version::version_order;

/// Group and version.
pub type GroupVersion = (String, String);

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
    versions: BTreeMap<GroupVersion, Version>,
    /// The OpenAPI document of all of them.
    whole: Arc<Written>,
}

/// What is served in one version.
#[derive(Debug, Clone, Default)]
struct Version {
    /// In the order of registration.
    resources: Vec<Arc<Resource>>,
    /// The OpenAPI document of these resources.
    document: Arc<Written>,
}

/// A document, of which each part is created at the first request for it.
#[derive(Debug, Default)]
pub struct Written {
    /// A digest of all that its content depends on, as an `ETag` has it.
    pub digest: OnceLock<String>,
    /// The document as JSON, compressed.
    pub json: OnceLock<Bytes>,
    /// The document as protobuf, compressed.
    pub protobuf: OnceLock<Bytes>,
}

impl Catalog {
    pub(super) fn add(&mut self, resource: Arc<Resource>) {
        let group_version = (resource.group.clone(), resource.version.clone());
        let version = self.versions.entry(group_version).or_default();
        version.resources.push(resource);
        // A new cell instead of a cleared one: a request that holds the old catalog goes on with the document that
        // belongs to it.
        version.document = Arc::default();
        self.whole = Arc::default();
    }

    pub(super) fn remove(&mut self, table: TableId) {
        for version in self.versions.values_mut() {
            let before = version.resources.len();
            version.resources.retain(|resource| resource.table != table);
            if version.resources.len() != before {
                version.document = Arc::default();
            }
        }
        self.versions
            // Discovery shows no version without resources.
            .retain(|_, version| !version.resources.is_empty());
        self.whole = Arc::default();
    }

    /// Returns whether any resource of a group is served.
    #[must_use]
    pub fn has_group(&self, group: &str) -> bool {
        self.versions.keys().any(|(each, _)| each == group)
    }

    /// Returns whether any resource of a version is served.
    #[must_use]
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        self.resources(group, version).next().is_some()
    }

    /// Returns the groups in alphabetical order, without the core group.
    #[must_use]
    pub fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = self
            .versions
            .keys()
            .map(|(group, _)| group.as_str())
            .filter(|g| !g.is_empty())
            .collect();
        // The keys are sorted, so versions of one group are neighbours.
        groups.dedup();
        groups
    }

    /// Returns the versions of a group, the preferred one first.
    #[must_use]
    pub fn versions(&self, group: &str) -> Vec<&str> {
        let mut versions: Vec<&str> = self
            .versions
            .keys()
            .filter(|(each, _)| each == group)
            .map(|(_, version)| version.as_str())
            .collect();
        versions.sort_by_key(|version| std::cmp::Reverse(version_order(version)));
        versions
    }

    /// Iterates over the resources of a version, in the order of registration.
    pub fn resources(&self, group: &str, version: &str) -> impl Iterator<Item = &Arc<Resource>> {
        let version = self.versions.get(&(group.to_owned(), version.to_owned()));
        version.into_iter().flat_map(|version| &version.resources)
    }

    /// Returns the OpenAPI document of all resources.
    #[must_use]
    pub fn whole(&self) -> &Written {
        &self.whole
    }

    /// Returns the OpenAPI document of a version; `None` if it is not served.
    #[must_use]
    pub fn document(&self, group: &str, version: &str) -> Option<&Written> {
        let version = self.versions.get(&(group.to_owned(), version.to_owned()))?;
        Some(&version.document)
    }

    /// Returns a resource by its plural name.
    #[must_use]
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources(group, version)
            .find(|resource| resource.plural == plural)
    }

    /// Iterates over every resource in every version.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.versions
            .values()
            .flat_map(|version| &version.resources)
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
