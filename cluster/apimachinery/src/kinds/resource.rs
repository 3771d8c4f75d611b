//! One resource in one version.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use lariat_core::{Gvk, ObjectKey};

use crate::client_config::ClientConfig;
use crate::names::NameRule;
use crate::object::Object;
use crate::schema::{self, Schema};
use crate::structural::Structural;
use crate::structural::json_path::JsonPath;

/// One resource in one version: its names, and the ways in which kinds differ.
#[derive(Debug)]
pub struct Resource {
    /// Its group, empty for the core group.
    pub group: String,
    /// Its version, such as `v1`.
    pub version: String,
    /// The group and version in which a real server stores its objects.
    pub storage_version: String,
    /// The kind of its objects.
    pub kind: String,
    /// The kind of its lists.
    pub list_kind: String,
    /// Its name in URLs.
    pub plural: String,
    /// Its name for one object, in lower case.
    pub singular: String,
    /// The names kubectl takes for it.
    pub short_names: Vec<String>,
    /// The groups of resources it belongs to, such as `all`.
    pub categories: Vec<String>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// The rules by which the server treats it.
    pub rules: Rules,
    /// The table in which its objects are stored.
    pub table: TableId,
    /// The kind is being removed: nothing new may be created.
    pub terminating: Arc<AtomicBool>,
    /// The schema that a CRD has for the content of the objects.
    pub schema: Option<Arc<Structural>>,
    /// The schema of the version in which objects are stored, if that is another one.
    pub storage_schema: Option<Arc<Structural>>,
    /// The webhook that converts its objects between versions, if there is one.
    ///
    /// Without it an object of one version is one of another if that is written on it.
    pub conversion: Option<Arc<Conversion>>,
    /// The types of the fields, computed at the first use.
    pub types: OnceLock<Schema>,
    /// The stored objects that may not conform to the present schema.
    pub outdated: Outdated,
    /// The columns a CRD adds to tables.
    pub columns: Vec<Column>,
    /// The warning for clients of a deprecated version.
    pub deprecation: Option<String>,
}

/// The table of a resource's objects, which all versions of the kind share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub usize);

/// The webhook that converts objects of a kind between its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversion {
    /// The address of the webhook.
    pub client: ClientConfig,
    /// The version of the reviews it is sent, such as `v1`.
    pub review: String,
}

/// The stored objects that may have been written under another schema.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outdated {
    /// All may have been, since the versions of the kind have different schemas.
    pub always: bool,
    /// Those up to this revision, at which the CRD changed.
    pub up_to: u64,
}

/// A column of a table, as `additionalPrinterColumns` define them.
#[derive(Debug)]
pub struct Column {
    /// The heading of the column.
    pub name: String,
    /// The type of its values: `string`, `integer`, `date` …
    pub kind: String,
    /// The format of its values, often empty.
    pub format: String,
    /// The description of the column.
    pub description: String,
    /// 0 for columns that are always shown; others are for `-o wide`.
    pub priority: i32,
    /// The path of its value in an object.
    pub path: JsonPath,
}

/// The paths of what the scale subresource of a custom resource shows.
#[derive(Debug, Clone)]
pub struct Scale {
    /// The wanted replicas.
    pub spec_path: JsonPath,
    /// The present replicas.
    pub status_path: JsonPath,
    /// The selector of the Pods, as a text.
    pub selector_path: Option<JsonPath>,
}

/// The differences between kinds in how the server treats them.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Whether the server counts changes of the object in `metadata.generation`.
    pub generation: Generation,
    /// Whether the kind has a `/status` subresource.
    ///
    /// If it has, the status is written only through it.
    pub status: bool,
    /// Whether PUT to a missing name creates.
    pub put_creates: bool,
    /// Whether an update must name the resource version it replaces.
    pub version_required: bool,
    /// Whether a deletion answers the object instead of a Status.
    pub delete_answers_object: bool,
    /// Field labels beside name and namespace.
    pub field_labels: Vec<String>,
    /// The kind comes from a CustomResourceDefinition.
    pub custom: bool,
    /// Whether objects of the kind are only created, answered and not stored.
    pub review: bool,
    /// Whether only the server itself writes its objects, and nothing watches them.
    pub read_only: bool,
    /// The rule for names of this kind.
    pub names: NameRule,
    /// The scale subresource of a custom resource.
    pub scale: Option<Scale>,
}

/// The changes that raise `metadata.generation`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Generation {
    /// The kind has no generation.
    #[default]
    None,
    /// Changes outside metadata and status.
    Content,
    /// The same, and every write that sends an empty list or map, which is not stored.
    ///
    /// NetworkPolicies and configurations of webhooks have it.
    ContentAsSent,
    /// Also changes of labels, as for EndpointSlices.
    ///
    /// Members that are sent and not kept count as well.
    ContentAndLabels,
    /// Changes outside metadata and status, but new objects have none: CSIDrivers.
    ContentChanged,
    /// Nothing: it is that of the creation, as for PriorityClasses.
    Created,
    /// Also changes of annotations, as for Deployments.
    ContentAndAnnotations,
    /// Changes outside metadata: custom resources without a status subresource.
    ContentAndStatus,
}

impl Resource {
    /// Returns group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }

    /// Returns group and version, as objects have them.
    pub fn api_version(&self) -> String {
        self.gvk().api_version()
    }

    /// Returns the plural with its group, as messages name a resource.
    ///
    /// ```
    /// use lariat_apimachinery::kinds::{Kinds, TableId};
    ///
    /// let catalog = Kinds::new(|_| TableId(0)).catalog();
    /// let deployments = catalog.resource("apps", "v1", "deployments").expect("it is built in");
    /// assert_eq!(deployments.qualified(), "deployments.apps");
    /// assert_eq!(deployments.api_version(), "apps/v1");
    /// ```
    pub fn qualified(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    /// Returns the types of the fields.
    pub fn types(&self) -> &Schema {
        self.types.get_or_init(|| {
            let builtin = || schema::builtin(&self.api_version(), &self.kind);
            // A CRD may define a kind that also is in the table, such as one of an older group.
            let known = if self.rules.custom { None } else { builtin() };
            let defined = self.schema.as_ref().map(|schema| schema.raw());
            known.unwrap_or_else(|| schema::custom(defined))
        })
    }

    /// Returns whether the kind is being removed.
    pub fn is_terminating(&self) -> bool {
        self.terminating.load(Ordering::Relaxed)
    }

    /// Returns the key of an object named in a URL.
    pub fn key(&self, namespace: Option<&str>, name: &str) -> ObjectKey {
        // A Namespace of the URL says nothing about an object of the cluster.
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => ObjectKey::namespaced(namespace, name),
            None => ObjectKey::cluster(name),
        }
    }

    /// Sets kind and version of this resource on an object.
    ///
    /// This is all that the conversion strategy `None` does.
    pub fn set_type(&self, object: &mut Object) {
        object.insert("kind".to_owned(), self.kind.clone().into());
        object.insert("apiVersion".to_owned(), self.api_version().into());
    }

    /// Returns the JSON with which an object of this resource begins, up to the comma.
    pub fn head(&self) -> String {
        format!(
            // No escaping is needed: both are checked names.
            r#""kind":"{}","apiVersion":"{}""#,
            self.kind,
            self.api_version()
        )
    }
}

/// Returns a name with its group: `deployments.apps`, `pods`.
///
/// ```
/// use lariat_apimachinery::kinds::qualified;
///
/// assert_eq!(qualified("deployments", "apps"), "deployments.apps");
/// assert_eq!(qualified("pods", ""), "pods");
/// ```
#[must_use]
pub fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}
