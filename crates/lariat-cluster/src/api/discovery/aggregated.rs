//! Discovery in one document for all groups.

use bytes::Bytes;
use http::header::HeaderValue;
use lariat_apimachinery::kinds::{Catalog, Resource};
use serde_json::{Value, json};

use super::documents::{sorted, verbs};
use super::order::{groups as group_names, versions};
use super::subresources::subresources;
use crate::status::ApiError;
use crate::wire::negotiate::{Conversion, Encoding, Offers, choose};

/// The version of the document a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aggregated {
    V2,
    V2beta1,
}

impl Aggregated {
    /// Returns the version a client prefers; `None` for the legacy documents.
    ///
    /// The documents for all groups are only in JSON.
    pub(crate) fn negotiate(accept: &str, offers: Offers) -> Result<Option<Self>, ApiError> {
        let serves = |encoding, conversion: Option<Conversion<'_>>| match conversion {
            None => Some(None),
            Some(_) if encoding == Encoding::Protobuf => None,
            Some(("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")) => Some(Some(Self::V2)),
            Some(("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1")) => {
                Some(Some(Self::V2beta1))
            }
            Some(_) => None,
        };
        Ok(choose(accept, offers, serves)?.1)
    }

    fn version(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V2beta1 => "v2beta1",
        }
    }

    /// Returns the content type, which repeats what was asked for.
    pub(crate) fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::V2 => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Self::V2beta1 => {
                "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
            }
        })
    }
}

/// Writes the document of the core group, or of all others.
pub(crate) fn aggregated(catalog: &Catalog, form: Aggregated, core: bool) -> Bytes {
    let groups = if core { vec![""] } else { group_names(catalog) };
    let items: Vec<Value> = groups
        .into_iter()
        .map(|group| group_json(catalog, group))
        .collect();
    let document = json!({
        "kind": "APIGroupDiscoveryList", "metadata": {}, "items": items,
        "apiVersion": format!("apidiscovery.k8s.io/{}", form.version()),
    });
    format!("{document}\n").into()
}

fn group_json(catalog: &Catalog, group: &str) -> Value {
    let versions: Vec<Value> = versions(catalog, group)
        .into_iter()
        .map(|version| {
            let resources: Vec<Value> = sorted(catalog, group, version)
                .into_iter()
                .map(resource_json)
                .collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let mut metadata = json!({"creationTimestamp": null});
    if !group.is_empty() {
        metadata["name"] = group.into();
    }
    json!({"metadata": metadata, "versions": versions})
}

fn resource_json(resource: &Resource) -> Value {
    let scope = if resource.namespaced {
        "Namespaced"
    } else {
        "Cluster"
    };
    let mut document = json!({
        "resource": resource.plural, "responseKind": kind_json(resource, &resource.kind),
        "scope": scope, "singularResource": resource.singular, "verbs": verbs(resource),
    });
    if !resource.short_names.is_empty() {
        document["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        document["categories"] = resource.categories.clone().into();
    }
    let subresources: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|subresource| {
            let kind = subresource.kind.unwrap_or(&resource.kind);
            let kind = match subresource.group_version {
                Some((group, version)) => {
                    json!({"group": group, "version": version, "kind": kind})
                }
                None => kind_json(resource, kind),
            };
            json!({
                "subresource": subresource.name, "responseKind": kind,
                "verbs": subresource.verbs,
            })
        })
        .collect();
    if !subresources.is_empty() {
        document["subresources"] = subresources.into();
    }
    document
}

/// Writes a kind of the resource's own version.
///
/// Built-in groups leave its group and version empty.
fn kind_json(resource: &Resource, kind: &str) -> Value {
    if resource.rules.custom {
        json!({"group": resource.group, "version": resource.version, "kind": kind})
    } else {
        json!({"group": "", "version": "", "kind": kind})
    }
}
