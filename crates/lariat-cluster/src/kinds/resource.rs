//! What the server knows of one resource in one version.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use lariat_core::{Gvk, ObjectKey};

use crate::schema::{self, Schema};
use crate::store::{Object, TableId};
use crate::structural::Structural;
use crate::structural::json_path::JsonPath;

/// One resource in one version: its names, and the ways in which kinds differ.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) rules: Rules,
    pub(crate) table: TableId,
    /// The kind is being removed: nothing new may be created.
    pub(crate) terminating: Arc<AtomicBool>,
    /// What a definition says about the content of the objects.
    pub(crate) schema: Option<Arc<Structural>>,
    /// The types of the fields, found when they are first asked for.
    pub(crate) types: OnceLock<Schema>,
    /// What is stored may not be as the schema wants it.
    pub(crate) outdated: Outdated,
    /// The columns a definition adds to tables.
    pub(crate) columns: Vec<Column>,
    /// What clients of a deprecated version are told.
    pub(crate) deprecation: Option<String>,
}

/// Which stored objects were written under another schema than the one they are read by.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outdated {
    /// All may have been, since the versions of the kind have different schemas.
    pub(crate) always: bool,
    /// Those up to this revision, at which the definition changed.
    pub(crate) up_to: u64,
}

/// A column of a table, as `additionalPrinterColumns` define them.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i32,
    pub(crate) path: JsonPath,
}

/// Where custom resources keep what their scale subresource shows.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    pub(crate) spec_path: JsonPath,
    pub(crate) status_path: JsonPath,
    pub(crate) selector_path: Option<JsonPath>,
}

/// Where kinds differ in their treatment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    /// Whether the server counts changes of the object in `metadata.generation`.
    pub(crate) generation: Generation,
    /// Whether there is a `/status` subresource, so that status is written only through it.
    pub(crate) status: bool,
    /// Whether PUT to a missing name creates.
    pub(crate) put_creates: bool,
    /// Whether an update must name the resource version it replaces.
    pub(crate) version_required: bool,
    /// Whether a deletion answers the object instead of a Status.
    pub(crate) delete_answers_object: bool,
    /// Field labels beside name and namespace.
    pub(crate) field_labels: Vec<String>,
    /// The kind comes from a CustomResourceDefinition.
    pub(crate) custom: bool,
    /// The kind is a question the server answers: it is only created, and nothing is stored.
    pub(crate) review: bool,
    /// What a name of this kind must look like.
    pub(crate) names: NameRule,
    /// The scale subresource of a custom resource.
    pub(crate) scale: Option<Scale>,
}

/// Which changes raise `metadata.generation`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The kind has no generation.
    #[default]
    None,
    /// Changes outside metadata and status.
    Content,
    /// Also changes of annotations, as for Deployments.
    ContentAndAnnotations,
    /// Changes outside metadata: custom resources without a status subresource.
    ContentAndStatus,
}

/// The syntax of names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// DNS subdomain (RFC 1123), up to 253 characters.
    #[default]
    Subdomain,
    /// DNS label (RFC 1123), up to 63 characters.
    Label,
    /// Anything that can be a path segment.
    PathSegment,
}

impl Resource {
    pub(crate) fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }

    pub(crate) fn api_version(&self) -> String {
        self.gvk().api_version()
    }

    /// Returns the plural with its group, as messages name a resource.
    pub(crate) fn qualified(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    /// Returns the kind with its group, as messages name a kind.
    pub(crate) fn qualified_kind(&self) -> String {
        qualified(&self.kind, &self.group)
    }

    /// Returns the types of the fields.
    pub(crate) fn types(&self) -> &Schema {
        self.types.get_or_init(|| {
            let builtin = || schema::builtin(&self.api_version(), &self.kind);
            let known = if self.rules.custom { None } else { builtin() };
            let defined = self.schema.as_ref().map(|schema| schema.raw());
            known.unwrap_or_else(|| schema::custom(defined))
        })
    }

    pub(crate) fn is_terminating(&self) -> bool {
        self.terminating.load(Ordering::Relaxed)
    }

    /// Returns the key of an object named in a URL.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> ObjectKey {
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => ObjectKey::namespaced(namespace, name),
            None => ObjectKey::cluster(name),
        }
    }

    /// Puts kind and version of this resource on an object, which is all that conversion `None` does.
    pub(crate) fn set_type(&self, object: &mut Object) {
        object.insert("kind".to_owned(), self.kind.clone().into());
        object.insert("apiVersion".to_owned(), self.api_version().into());
    }

    /// Returns the JSON with which an object of this resource begins, up to the comma.
    pub(crate) fn head(&self) -> String {
        format!(
            r#""kind":"{}","apiVersion":"{}""#,
            self.kind,
            self.api_version()
        )
    }
}

pub(crate) fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}
