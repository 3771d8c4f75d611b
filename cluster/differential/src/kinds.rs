//! What a server serves, and the manifests to begin with.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use lariat_core::yaml;
use serde_json::Value;

/// A kind that a server serves.
#[derive(Debug, Clone)]
pub struct Kind {
    /// Group and version, as objects have them.
    pub api_version: String,
    /// Its name.
    pub kind: String,
    /// Its name in URLs.
    pub plural: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// What is below its objects, such as `status`.
    pub subresources: BTreeSet<String>,
    /// Valid objects of it.
    pub manifests: Vec<Value>,
    /// Valid statuses of it.
    pub statuses: Vec<Value>,
}

const MANIFESTS: &str = include_str!("manifests.yaml");
const STATUSES: &str = include_str!("statuses.yaml");
const INSTALLED: &str = include_str!("installed.yaml");

/// Kinds whose objects act on the server as a whole: most of what is done with them is a dry run.
const DELICATE: [&str; 12] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "APIService",
    "FlowSchema",
    "PriorityLevelConfiguration",
    "PriorityClass",
    "ServiceCIDR",
    "CustomResourceDefinition",
];

/// Kinds whose objects the API server itself changes after they are written: nothing of them is stored.
const WORKED_ON: [&str; 4] = [
    "APIService",
    "CustomResourceDefinition",
    "FlowSchema",
    "PriorityLevelConfiguration",
];

impl Kind {
    /// Returns the path of the collection.
    #[must_use]
    pub fn collection(&self) -> String {
        let root = if self.api_version.contains('/') {
            "apis"
        } else {
            "api"
        };
        let namespace = if self.namespaced {
            "/namespaces/${ns}"
        } else {
            ""
        };
        format!("/{root}/{}{namespace}/{}", self.api_version, self.plural)
    }

    /// Returns the path of the collection in all namespaces.
    #[must_use]
    pub fn everywhere(&self) -> String {
        self.collection().replace("/namespaces/${ns}", "")
    }

    /// Returns whether its objects act on the server as a whole.
    #[must_use]
    pub fn is_delicate(&self) -> bool {
        DELICATE.contains(&self.kind.as_str())
    }

    /// Returns whether the API server changes objects of this kind by itself.
    #[must_use]
    pub fn is_worked_on(&self) -> bool {
        WORKED_ON.contains(&self.kind.as_str())
    }

    /// Returns whether it has a subresource.
    #[must_use]
    pub fn has(&self, subresource: &str) -> bool {
        self.subresources.contains(subresource)
    }
}

/// Returns the documents of a YAML file.
fn documents(text: &str) -> Result<Vec<Value>> {
    // The files of this crate have separators in this form only.
    let documents = text.split("\n---\n");
    documents
        .map(|document| yaml::read(document).context("a manifest"))
        .collect()
}

/// Returns the CRDs that are created before anything else.
///
/// # Errors
///
/// The file in this crate is not YAML.
pub fn installed() -> Result<Vec<Value>> {
    documents(INSTALLED)
}

/// Returns the kinds with manifests that a server serves, by its discovery.
///
/// # Errors
///
/// The files in this crate are not YAML.
pub fn kinds(resource_lists: &[Value]) -> Result<Vec<Kind>> {
    let mut manifests: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    for manifest in documents(MANIFESTS)? {
        let key = (text(&manifest, "apiVersion"), text(&manifest, "kind"));
        manifests.entry(key).or_default().push(manifest);
    }
    let statuses: Vec<Value> = serde_json::from_value(yaml::read(STATUSES)?).context("statuses")?;
    let mut kinds = Vec::new();
    for list in resource_lists {
        let resources = list["resources"].as_array().into_iter().flatten();
        let names: Vec<String> = resources.clone().map(|each| text(each, "name")).collect();
        for resource in resources {
            let (plural, kind) = (text(resource, "name"), text(resource, "kind"));
            let api_version = text(list, "groupVersion");
            let Some(manifests) = manifests.get(&(api_version.clone(), kind.clone())) else {
                continue;
            };
            // A subresource with the kind of its resource, such as `pods/status`.
            if plural.contains('/') {
                continue;
            }
            let below = |name: &String| name.strip_prefix(&format!("{plural}/")).map(str::to_owned);
            let of_kind = statuses.iter().filter(|each| each["kind"] == kind.as_str());
            kinds.push(Kind {
                namespaced: resource["namespaced"] == true,
                subresources: names.iter().filter_map(below).collect(),
                manifests: manifests.clone(),
                statuses: of_kind.map(|each| each["status"].clone()).collect(),
                api_version,
                kind,
                plural,
            });
        }
    }
    Ok(kinds)
}
