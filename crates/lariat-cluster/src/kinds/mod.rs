//! The kinds the server serves: built-in rows, and what CustomResourceDefinitions add.

mod builtin;
mod custom;
mod machinery;
mod resource;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::RwLock;

use crate::store::{Store, TableId};

pub(crate) use custom::{Definition, Names, Spec, resources_of};
pub(crate) use resource::Column;
pub(crate) use resource::{Generation, NameRule, Resource, Scale, qualified};

/// Group and version.
pub(crate) type GroupVersion = (String, String);

/// All served resources. A reader takes the present catalog and keeps it for its request.
#[derive(Debug)]
pub(crate) struct Kinds {
    catalog: RwLock<Arc<Catalog>>,
    pub(crate) namespaces: TableId,
    pub(crate) definitions: TableId,
}

/// The resources served at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalog {
    /// By group and version, the core group first.
    versions: BTreeMap<GroupVersion, Version>,
}

/// What is served in one version.
#[derive(Debug, Clone, Default)]
struct Version {
    /// In the order of registration.
    resources: Vec<Arc<Resource>>,
    /// The document about these very resources, made when it is first asked for.
    document: Arc<OnceLock<Written>>,
}

/// A document, and the digest that tells it from others.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) text: Bytes,
    pub(crate) digest: String,
}

impl Kinds {
    /// Registers the built-in kinds.
    pub(crate) fn new(store: &Store) -> Self {
        let mut catalog = Catalog::default();
        for row in builtin::rows() {
            // Events are one store, whatever the group they are read and written in.
            let name = match row.plural {
                "events" => "events".to_owned(),
                plural => qualified(plural, row.group),
            };
            let table = store.table(&name);
            catalog.add(Arc::new(resource_of(row, table)));
        }
        Self {
            catalog: RwLock::new(Arc::new(catalog)),
            namespaces: store.table("namespaces"),
            definitions: store.table("customresourcedefinitions.apiextensions.k8s.io"),
        }
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read())
    }

    /// Replaces everything served for one table, in all its versions.
    pub(crate) fn serve(&self, table: TableId, resources: Vec<Arc<Resource>>) {
        let mut catalog = self.catalog.write();
        let mut next = Catalog::clone(&catalog);
        next.remove(table);
        for resource in resources {
            next.add(resource);
        }
        *catalog = Arc::new(next);
    }
}

impl Catalog {
    fn add(&mut self, resource: Arc<Resource>) {
        let version = (resource.group.clone(), resource.version.clone());
        let version = self.versions.entry(version).or_default();
        version.resources.push(resource);
        version.document = Arc::default();
    }

    fn remove(&mut self, table: TableId) {
        for version in self.versions.values_mut() {
            let before = version.resources.len();
            version.resources.retain(|resource| resource.table != table);
            if version.resources.len() != before {
                version.document = Arc::default();
            }
        }
        self.versions
            .retain(|_, version| !version.resources.is_empty());
    }

    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.versions.keys().any(|(each, _)| each == group)
    }

    pub(crate) fn has_version(&self, group: &str, version: &str) -> bool {
        self.resources(group, version).next().is_some()
    }

    /// Iterates over the groups, without the core group.
    pub(crate) fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = self
            .versions
            .keys()
            .map(|(group, _)| group.as_str())
            .filter(|g| !g.is_empty())
            .collect();
        groups.dedup();
        groups
    }

    /// Returns the versions of a group, the preferred one first.
    pub(crate) fn versions(&self, group: &str) -> Vec<&str> {
        let versions = self.versions.keys().filter(|(each, _)| each == group);
        let mut versions: Vec<&str> = versions.map(|(_, version)| version.as_str()).collect();
        versions.sort_by_key(|version| std::cmp::Reverse(custom::version_order(version)));
        versions
    }

    pub(crate) fn resources(
        &self,
        group: &str,
        version: &str,
    ) -> impl Iterator<Item = &Arc<Resource>> {
        let version = self.versions.get(&(group.to_owned(), version.to_owned()));
        version.into_iter().flat_map(|version| &version.resources)
    }

    /// Returns the place of the document about a version, if that is served.
    pub(crate) fn document(&self, group: &str, version: &str) -> Option<&OnceLock<Written>> {
        let version = self.versions.get(&(group.to_owned(), version.to_owned()))?;
        Some(&version.document)
    }

    pub(crate) fn resource(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<&Arc<Resource>> {
        self.resources(group, version)
            .find(|resource| resource.plural == plural)
    }

    /// Iterates over every resource in every version.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.versions
            .values()
            .flat_map(|version| &version.resources)
    }

    /// Returns the resource whose objects a table has, in one of its versions.
    pub(crate) fn of_table(&self, table: TableId) -> Option<&Arc<Resource>> {
        self.all().find(|resource| resource.table == table)
    }

    /// Iterates over every resource, one version each.
    pub(crate) fn each_table(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let mut seen = Vec::new();
        self.all().filter(move |resource| {
            let is_new = !seen.contains(&resource.table);
            seen.push(resource.table);
            is_new
        })
    }
}

fn resource_of(row: builtin::Row, table: TableId) -> Resource {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Resource {
        group: row.group.to_owned(),
        version: row.version.to_owned(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        short_names: texts(row.short_names),
        categories: texts(row.categories),
        namespaced: row.namespaced,
        rules: row.rules,
        table,
        terminating: Arc::default(),
        types: OnceLock::new(),
        schema: None,
        outdated: resource::Outdated::default(),
        columns: Vec::new(),
        deprecation: None,
    }
}
