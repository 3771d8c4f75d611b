//! The definition of custom kinds by a CustomResourceDefinition.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::resource::{Column, Conversion, Generation, Outdated, Resource, Rules, Scale, TableId};
use super::version::version_order;
use crate::client_config::ClientConfig;
use crate::object::Object;
use crate::structural::Structural;
use crate::structural::json_path::{JsonPath, PathError};

/// The parts of a CustomResourceDefinition that decide how its kind is served.
#[derive(Debug, Clone, Deserialize)]
pub struct Definition {
    /// The spec of the CRD.
    pub spec: Spec,
}

/// The spec of a CRD, as far as it decides how the kind is served.
#[derive(Debug, Clone, Deserialize)]
pub struct Spec {
    /// The group of the kind.
    pub group: String,
    /// `Namespaced` or `Cluster`.
    pub scope: String,
    /// The names of the kind.
    pub names: Names,
    /// All versions, served or not.
    pub versions: Vec<Version>,
    /// The conversion between them, as the CRD has it.
    #[serde(default)]
    pub conversion: Value,
}

/// The names of a defined kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Names {
    /// The name in URLs.
    pub plural: String,
    /// The name for one object.
    pub singular: String,
    /// The kind of the objects.
    pub kind: String,
    /// The kind of lists.
    pub list_kind: String,
    /// The names kubectl takes for it.
    #[serde(deserialize_with = "null_as_default")]
    pub short_names: Vec<String>,
    /// The groups of resources it belongs to.
    #[serde(deserialize_with = "null_as_default")]
    pub categories: Vec<String>,
}

/// One version of a defined kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// Its name, such as `v1`.
    pub name: String,
    /// Whether it is served.
    pub served: bool,
    /// Whether objects are stored in it.
    #[serde(default)]
    storage: bool,
    #[serde(default)]
    deprecated: bool,
    #[serde(default)]
    deprecation_warning: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    schema: Validation,
    #[serde(default, deserialize_with = "null_as_default")]
    subresources: Subresources,
    #[serde(default, deserialize_with = "null_as_default")]
    selectable_fields: Vec<SelectableField>,
    #[serde(default, deserialize_with = "null_as_default")]
    additional_printer_columns: Vec<PrinterColumn>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PrinterColumn {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    format: String,
    description: String,
    priority: i32,
    json_path: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Validation {
    #[serde(default, rename = "openAPIV3Schema")]
    schema: Value,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Subresources {
    status: Option<Object>,
    scale: Option<ScalePaths>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScalePaths {
    spec_replicas_path: String,
    status_replicas_path: String,
    #[serde(default)]
    label_selector_path: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SelectableField {
    json_path: String,
}

/// Reads null as the default, as Go does.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    // `serde(default)` covers absent members only.
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Definition {
    /// Decodes a CRD; members that do not matter here are ignored.
    ///
    /// # Errors
    ///
    /// A member has the wrong type, or a required one is missing.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat_apimachinery::kinds::Definition;
    /// use serde_json::json;
    ///
    /// let crd = json!({"spec": {
    ///     "group": "example.com", "scope": "Namespaced",
    ///     "names": {"plural": "widgets", "kind": "Widget"},
    ///     "versions": [{
    ///         "name": "v1", "served": true, "storage": true,
    ///         "schema": {"openAPIV3Schema": {"type": "object"}},
    ///     }],
    /// }});
    /// let definition = Definition::read(crd.as_object().expect("it is an object"))?;
    /// assert_eq!(definition.spec.names.plural, "widgets");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn read(object: &Object) -> serde_json::Result<Self> {
        serde_json::from_value(object.clone().into())
    }
}

/// Returns the resources a CRD serves, one for each served version.
///
/// `changed_at` is the revision of the last change of the CRD: objects stored up to it may have been written under
/// other schemas. `terminating` is shared by all versions, and set while the kind is being removed.
///
/// # Errors
///
/// A JSONPath of the CRD is invalid. Paths are checked when a CRD is written, but a data file may be older than the
/// check.
///
/// # Examples
///
/// ```
/// use lariat_apimachinery::kinds::{Definition, TableId, resources_of};
/// use serde_json::json;
/// use std::sync::Arc;
///
/// let crd = json!({"spec": {
///     "group": "example.com", "scope": "Namespaced",
///     "names": {"plural": "widgets", "kind": "Widget"},
///     "versions": [{
///         "name": "v1", "served": true, "storage": true,
///         "schema": {"openAPIV3Schema": {"type": "object"}},
///     }],
/// }});
/// let definition = Definition::read(crd.as_object().expect("it is an object"))?;
/// let resources = resources_of(&definition, TableId(0), &Arc::default(), 0)?;
/// assert_eq!(resources[0].api_version(), "example.com/v1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn resources_of(
    definition: &Definition,
    table: TableId,
    terminating: &Arc<AtomicBool>,
    changed_at: u64,
) -> Result<Vec<Arc<Resource>>, String> {
    let spec = &definition.spec;
    let names = &spec.names;
    let schemas = || spec.versions.iter().map(|version| &version.schema.schema);
    let outdated = Outdated {
        // An object may have been stored in a version whose schema differs, at any time.
        always: schemas().any(|schema| Some(schema) != schemas().next()),
        up_to: changed_at,
    };
    let stored = spec.versions.iter().find(|version| version.storage);
    let storage_schema =
        stored.map(|version| Arc::new(Structural::compile(&version.schema.schema)));
    let storage_schema_of = |version: &Version| {
        // With equal schemas, pruning by the one is pruning by the other.
        let stored = stored.filter(|stored| stored.schema.schema != version.schema.schema);
        storage_schema.clone().filter(|_| stored.is_some())
    };
    let conversion = conversion_of(spec).map(Arc::new);
    let served = spec.versions.iter().filter(|version| version.served);
    let resource = |version: &Version| {
        // Checked first because it costs least, and a CRD that cannot be served is checked repeatedly.
        let (rules, columns) = (rules_of(version)?, columns_of(version)?);
        Ok(Arc::new(Resource {
            group: spec.group.clone(),
            version: version.name.clone(),
            storage_version: format!("{}/{}", spec.group, storage_version(spec)),
            kind: names.kind.clone(),
            list_kind: names.list_kind.clone(),
            plural: names.plural.clone(),
            singular: names.singular.clone(),
            short_names: names.short_names.clone(),
            categories: names.categories.clone(),
            namespaced: spec.scope == "Namespaced",
            rules,
            // All versions share one table, and one flag: a kind terminates in all of them.
            table,
            terminating: Arc::clone(terminating),
            conversion: conversion.clone(),
            types: OnceLock::new(),
            schema: Some(Arc::new(Structural::compile(&version.schema.schema))),
            storage_schema: storage_schema_of(version),
            outdated,
            columns,
            deprecation: deprecation_of(spec, version),
        }))
    };
    served.map(resource).collect()
}

/// Returns the webhook that converts objects, if one does.
fn conversion_of(spec: &Spec) -> Option<Conversion> {
    let webhook = &spec.conversion["webhook"];
    let versions = webhook["conversionReviewVersions"].as_array();
    let mut versions = versions.into_iter().flatten().filter_map(Value::as_str);
    // The first known one in the order of the webhook's preference.
    let known = versions.find(|version| matches!(*version, "v1" | "v1beta1"));
    (spec.conversion["strategy"] == "Webhook").then(|| Conversion {
        client: ClientConfig::read(&webhook["clientConfig"]),
        review: known.unwrap_or("v1").to_owned(),
    })
}

fn storage_version(spec: &Spec) -> &str {
    let stored = spec.versions.iter().find(|version| version.storage);
    stored.map_or("", |version| &version.name)
}

/// Returns the columns of a version, up to the first whose path cannot be read.
// `tableconvertor.New` returns what it has so far, and its error is only logged.
fn columns_of(version: &Version) -> Result<Vec<Column>, String> {
    let mut compiled = Vec::new();
    for (at, column) in version.additional_printer_columns.iter().enumerate() {
        let member = format!("additionalPrinterColumns[{at}].jsonPath");
        let description = match column.description.as_str() {
            "" => {
                let path = &column.json_path;
                // The text of the server, since kubectl shows it.
                format!("Custom resource definition column (in JSONPath format): {path}")
            }
            description => description.to_owned(),
        };
        let path = match JsonPath::parse(&column.json_path) {
            Ok(path) => path,
            Err(PathError::Malformed(_)) => break,
            Err(error) => return Err(invalid(version, &member, &error)),
        };
        compiled.push(Column {
            name: column.name.clone(),
            kind: column.kind.clone(),
            format: column.format.clone(),
            description,
            priority: column.priority,
            path,
        });
    }
    Ok(compiled)
}

fn invalid(version: &Version, member: &str, error: &PathError) -> String {
    let version = &version.name;
    format!("{member} of version {version} is an invalid path: {error}")
}

/// Returns the warning for clients of a deprecated version.
///
/// Source: `k8s.io/apiextensions-apiserver/pkg/apiserver.defaultDeprecationWarning`.
fn deprecation_of(spec: &Spec, version: &Version) -> Option<String> {
    if !version.deprecated {
        return None;
    }
    if let Some(warning) = &version.deprecation_warning {
        return Some(warning.clone());
    }
    let (group, kind) = (&spec.group, &spec.names.kind);
    let present = format!("{group}/{} {kind} is deprecated", version.name);
    let newer = spec.versions.iter().filter(|other| {
        let outlasts = other.served && !other.deprecated && other.name != version.name;
        // Only a newer version is recommended, and never a deprecated one.
        outlasts && version_order(&other.name) > version_order(&version.name)
    });
    let best = newer.max_by_key(|other| version_order(&other.name));
    Some(match best {
        Some(best) => format!("{present}; use {group}/{} {kind}", best.name),
        None => present,
    })
}

fn scale_of(version: &Version) -> Result<Option<Scale>, String> {
    let Some(paths) = &version.subresources.scale else {
        return Ok(None);
    };
    let path = |member: &str, text: &str| {
        let member = format!("subresources.scale.{member}");
        JsonPath::dotted(text).map_err(|error| invalid(version, &member, &error))
    };
    let selector = paths
        .label_selector_path
        .as_deref()
        .filter(|text| !text.is_empty());
    Ok(Some(Scale {
        spec_path: path("specReplicasPath", &paths.spec_replicas_path)?,
        status_path: path("statusReplicasPath", &paths.status_replicas_path)?,
        selector_path: selector
            .map(|text| path("labelSelectorPath", text))
            .transpose()?,
    }))
}

fn rules_of(version: &Version) -> Result<Rules, String> {
    let status = version.subresources.status.is_some();
    let generation = if status {
        Generation::Content
    } else {
        // Without the subresource a status is content like any other.
        Generation::ContentAndStatus
    };
    let paths = version.selectable_fields.iter();
    Ok(Rules {
        generation,
        status,
        // Custom resources never allow an update without a version, unlike most built-in kinds.
        version_required: true,
        custom: true,
        field_labels: paths
            .map(|f| f.json_path.trim_start_matches('.').to_owned())
            .collect(),
        scale: scale_of(version)?,
        ..Rules::default()
    })
}
