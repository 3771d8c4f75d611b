//! Discovery in one document for all groups.

use bytes::Bytes;
use http::header::HeaderValue;
use lariat_apimachinery::kinds::{Catalog, Resource};
use serde::Serialize;

use super::documents::{sorted, verbs};
use super::order::{groups as group_names, versions};
use super::subresources::subresources;
use crate::status::ApiError;
use crate::wire::negotiate::{Conversion, Encoding, Offers, choose};

/// The content type of the document, which repeats the one in the request.
pub(crate) const AGGREGATED: HeaderValue = HeaderValue::from_static(
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
);

/// Returns whether a client prefers the document for all groups to the legacy ones.
///
/// Named anywhere, it comes before them, whatever the order and the qualities. It is only in JSON. The server
/// has no `v2beta1` of it any more.
///
/// Source: `WrappedHandler` in `k8s.io/apiserver/pkg/endpoints/discovery/aggregated`.
pub(crate) fn prefers_aggregated(accept: &str, offers: Offers) -> Result<bool, ApiError> {
    let aggregated = |encoding, conversion: Option<Conversion<'_>>| match conversion {
        // The legacy documents are written in protobuf, these are not.
        Some(_) if encoding == Encoding::Protobuf => None,
        Some(("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")) => Some(()),
        _ => None,
    };
    if choose(accept, offers, aggregated).is_ok() {
        return Ok(true);
    }
    choose(accept, offers, |_, conversion| {
        conversion.is_none().then_some(())
    })?;
    Ok(false)
}

/// Writes the document of the core group, or of all others.
pub(crate) fn aggregated(catalog: &Catalog, core: bool) -> Bytes {
    let groups = if core { vec![""] } else { group_names(catalog) };
    let document = GroupList {
        kind: "APIGroupDiscoveryList",
        api_version: "apidiscovery.k8s.io/v2",
        metadata: Metadata { name: None },
        items: groups
            .into_iter()
            .map(|group| group_of(catalog, group))
            .collect(),
    };
    let text = serde_json::to_string(&document).unwrap_or_default();
    // Go's encoder ends a document with a line feed.
    (text + "\n").into()
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupList<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata<'a>,
    items: Vec<Group<'a>>,
}

#[derive(Debug, Serialize)]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Group<'a> {
    metadata: Metadata<'a>,
    versions: Vec<Version<'a>>,
}

#[derive(Debug, Serialize)]
struct Version<'a> {
    version: &'a str,
    resources: Vec<ResourceDiscovery<'a>>,
    freshness: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery<'a> {
    resource: &'a str,
    response_kind: Kind<'a>,
    scope: &'static str,
    singular_resource: &'a str,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<Part<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    subresource: &'static str,
    response_kind: Kind<'a>,
    verbs: &'static [&'static str],
}

#[derive(Debug, Serialize)]
struct Kind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

fn group_of<'a>(catalog: &'a Catalog, group: &'a str) -> Group<'a> {
    let versions = versions(catalog, group).into_iter().map(|version| Version {
        version,
        resources: sorted(catalog, group, version)
            .into_iter()
            .map(discovered)
            .collect(),
        freshness: "Current",
    });
    Group {
        metadata: Metadata {
            name: Some(group).filter(|group| !group.is_empty()),
        },
        versions: versions.collect(),
    }
}

fn discovered(resource: &Resource) -> ResourceDiscovery<'_> {
    let parts = subresources(resource).into_iter().map(|part| Part {
        subresource: part.name,
        response_kind: match part.group_version {
            Some((group, version)) => Kind {
                group,
                version,
                kind: part.kind.unwrap_or(&resource.kind),
            },
            None => kind_of(resource, part.kind.unwrap_or(&resource.kind)),
        },
        verbs: part.verbs,
    });
    ResourceDiscovery {
        resource: &resource.plural,
        response_kind: kind_of(resource, &resource.kind),
        scope: if resource.namespaced {
            "Namespaced"
        } else {
            "Cluster"
        },
        singular_resource: &resource.singular,
        verbs: verbs(resource),
        short_names: &resource.short_names,
        categories: &resource.categories,
        subresources: parts.collect(),
    }
}

/// Returns a kind of the resource's own version, which built-in groups leave empty.
fn kind_of<'a>(resource: &'a Resource, kind: &'a str) -> Kind<'a> {
    let (group, version) = if resource.rules.custom {
        (resource.group.as_str(), resource.version.as_str())
    } else {
        ("", "")
    };
    Kind {
        group,
        version,
        kind,
    }
}
