//! What the cluster serves.

use anyhow::{Context, Result};
use http::Request;
use http::header::ACCEPT;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResourceList};
use kube::Client;
use kube::core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery};
use lariat_core::{Gvk, ResourceKind, Scope};
use serde::Deserialize;

use super::kinds::Kind;

/// The media types of aggregated discovery; old servers answer a group list.
const ACCEPTED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// Aggregated discovery; `None` for another document.
#[derive(Deserialize)]
struct Document {
    kind: String,
    #[serde(default)]
    items: Vec<APIGroupDiscovery>,
}

/// The core group's versions, or all other groups, without aggregation.
#[derive(Deserialize)]
struct Versions {
    #[serde(default)]
    versions: Vec<String>,
    #[serde(default)]
    groups: Vec<APIGroup>,
}

/// Returns what the cluster serves, the core group first.
///
/// Each kind is in the version that its group prefers.
pub(super) async fn served(client: &Client) -> Result<Vec<Kind>> {
    let mut kinds: Vec<Kind> = Vec::new();
    for root in ["/api", "/apis"] {
        let text = get(client, root).await?;
        let found = match aggregated(&text) {
            Some(found) => found,
            None => each(client, root, &text).await?,
        };
        for kind in found {
            let gvk = kind.resource.gvk();
            // A server lists its preferred version first, so further versions of a resource are skipped.
            let is_known = kinds.iter().any(|other| {
                other.resource.plural() == kind.resource.plural()
                    && other.resource.gvk().group() == gvk.group()
            });
            if !is_known {
                kinds.push(kind);
            }
        }
    }
    Ok(kinds)
}

async fn get(client: &Client, path: &str) -> Result<String> {
    let request = Request::get(path)
        .header(ACCEPT, ACCEPTED)
        .body(Vec::new())?;
    let text = client.request_text(request).await;
    text.map_err(|error| anyhow::anyhow!("{}", lariat_core::describe(&error)))
        .with_context(|| format!("cannot ask the cluster what it serves under {path}"))
}

fn has(verbs: &[String], wanted: &str) -> bool {
    verbs.iter().any(|verb| verb == wanted)
}

fn singular(given: &str, kind: &str) -> String {
    match given {
        "" => kind.to_lowercase(),
        given => given.to_owned(),
    }
}

/// Reads discovery of all groups in one document; none if it is something else.
pub(super) fn aggregated(text: &str) -> Option<Vec<Kind>> {
    let document: Document = serde_json::from_str(text).ok()?;
    // Servers before 1.30 ignore the first media type and answer an `APIGroupList` or `APIVersions`.
    if document.kind != "APIGroupDiscoveryList" {
        return None;
    }
    let mut kinds = Vec::new();
    for group in document.items {
        let name = group.metadata.and_then(|it| it.name).unwrap_or_default();
        for version in group.versions {
            let number = version.version.unwrap_or_default();
            let resources = version.resources.into_iter();
            kinds.extend(resources.filter_map(|each| readable(&name, &number, each)));
        }
    }
    Some(kinds)
}

/// Returns the kind of a resource, if its objects can be listed.
fn readable(group: &str, version: &str, resource: APIResourceDiscovery) -> Option<Kind> {
    // Reviews, for example, can only be created.
    if !has(&resource.verbs, "list") {
        return None;
    }
    let kind = resource.response_kind?.kind?;
    let scope = scope(resource.scope.as_deref() == Some("Namespaced"));
    Some(Kind {
        resource: ResourceKind::new(Gvk::new(group, version, &kind), &resource.resource?, scope),
        singular: singular(&resource.singular_resource.unwrap_or_default(), &kind),
        short_names: resource.short_names,
        is_watchable: has(&resource.verbs, "watch"),
    })
}

fn scope(is_namespaced: bool) -> Scope {
    if is_namespaced {
        Scope::Namespaced
    } else {
        Scope::Cluster
    }
}

/// Reads the discovery of each version of each group; those that fail are skipped.
async fn each(client: &Client, root: &str, text: &str) -> Result<Vec<Kind>> {
    let all: Versions = serde_json::from_str(text)
        .with_context(|| format!("cannot read what the cluster serves under {root}"))?;
    let mut paths = all.versions;
    for group in all.groups {
        let preferred = group.preferred_version.map(|it| it.group_version);
        let mut versions: Vec<String> = group
            .versions
            .into_iter()
            .map(|it| it.group_version)
            .collect();
        // `false` comes first; the sort is stable, so the others stay in the order of the server.
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        paths.extend(versions);
    }
    let mut kinds = Vec::new();
    for path in paths {
        if let Ok(text) = get(client, &format!("{root}/{path}")).await {
            kinds.extend(of_version(&path, &text));
        }
    }
    Ok(kinds)
}

/// Reads what one version of a group serves.
pub(super) fn of_version(path: &str, text: &str) -> Vec<Kind> {
    let (group, version) = path.split_once('/').unwrap_or(("", path));
    let resources =
        serde_json::from_str(text).map_or(Vec::new(), |it: APIResourceList| it.resources);
    let readable = resources
        .into_iter()
        // A slash is in the names of subresources only.
        .filter(|it| has(&it.verbs, "list") && !it.name.contains('/'));
    let kinds = readable.map(|it| {
        let gvk = Gvk::new(group, version, &it.kind);
        Kind {
            resource: ResourceKind::new(gvk, &it.name, scope(it.namespaced)),
            singular: singular(&it.singular_name, &it.kind),
            short_names: it.short_names.unwrap_or_default(),
            is_watchable: has(&it.verbs, "watch"),
        }
    });
    kinds.collect()
}
