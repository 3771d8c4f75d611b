//! Aggregated discovery: all groups in one document.
//!
//! Source: `apidiscovery.k8s.io/v2`, served since Kubernetes 1.30.

use kube::core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery, APIVersionDiscovery};
use lariat_core::{Gvk, ResourceKind, Scope};
use serde::Deserialize;

/// A kind that the API server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) resource: ResourceKind,
    pub(super) is_watchable: bool,
}

/// Returns whether a kind with these verbs can be cached.
pub(super) fn is_watchable(verbs: &[String]) -> bool {
    let has = |wanted: &str| verbs.iter().any(|verb| verb == wanted);
    has("list") && has("watch")
}

/// The `Accept` header of a request for all groups.
///
/// Servers without aggregated discovery answer with the list of groups.
pub(super) const ACCEPTED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;\
    as=APIGroupDiscoveryList,application/json";

/// A document that may be of another type.
#[derive(Deserialize)]
struct Document {
    kind: String,
    #[serde(default)]
    items: Vec<APIGroupDiscovery>,
}

/// Returns the resources of each group and version, by path.
///
/// Empty for a document of another type. A version whose server did not answer the aggregator is left out, so that it
/// is looked up separately.
pub(super) fn read(text: &str) -> Vec<(String, Vec<ResourceKind>)> {
    let plain = |(path, served): (String, Option<Vec<Served>>)| {
        let resources = served?.into_iter().map(|served| served.resource);
        Some((path, resources.collect()))
    };
    let all = served_kinds(text).unwrap_or_default();
    all.into_iter().filter_map(plain).collect()
}

/// What each path serves; `None` if the server behind it did not answer.
pub(super) type Paths = Vec<(String, Option<Vec<Served>>)>;

/// Returns the served resources, the versions of each group in order of preference.
///
/// `None` for a document of another type.
pub(super) fn served_kinds(text: &str) -> Option<Paths> {
    let document: Document = serde_json::from_str(text).ok()?;
    if document.kind != "APIGroupDiscoveryList" {
        return None;
    }
    let versions = document.items.into_iter().flat_map(|group| {
        let name = group.metadata.and_then(|it| it.name).unwrap_or_default();
        let versions = group.versions.into_iter();
        versions.map(move |version| (name.clone(), version))
    });
    let read = |(group, each): (String, APIVersionDiscovery)| {
        let version = each.version?;
        let path = Gvk::new(&group, &version, "").api_path();
        let resources = each
            .resources
            .into_iter()
            .filter_map(|each| served(&group, &version, each));
        let is_stale = each.freshness.as_deref() == Some("Stale");
        Some((path, (!is_stale).then(|| resources.collect())))
    };
    Some(versions.filter_map(read).collect())
}

fn served(group: &str, version: &str, each: APIResourceDiscovery) -> Option<Served> {
    // Missing for resources that have subresources only.
    let response = each.response_kind?;
    let or = |text: Option<String>, default: &str| {
        let text = text.filter(|text| !text.is_empty());
        text.unwrap_or_else(|| default.to_owned())
    };
    let gvk = Gvk::new(
        &or(response.group, group),
        &or(response.version, version),
        &response.kind?,
    );
    let scope = match each.scope.as_deref() {
        Some("Cluster") => Scope::Cluster,
        _ => Scope::Namespaced,
    };
    Some(Served {
        resource: ResourceKind::new(gvk, &each.resource?, scope),
        is_watchable: is_watchable(&each.verbs),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_holds_all_groups_but_those_that_did_not_answer() {
        let resource = |plural: &str, kind: &str, scope: &str| {
            json!({"resource": plural, "scope": scope, "verbs": ["list"],
                "responseKind": {"group": "", "version": "", "kind": kind}})
        };
        let document = json!({
            "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
            "items": [
                {"metadata": {"name": "demo.dev"}, "versions": [
                    {"version": "v1", "freshness": "Current", "resources": [
                        resource("widgets", "Widget", "Namespaced"),
                        resource("planets", "Planet", "Cluster"),
                        {"resource": "odd", "scope": "Namespaced"},
                    ]},
                    {"version": "v2", "freshness": "Stale"},
                ]},
                {"metadata": {}, "versions": [
                    {"version": "v1", "resources": [resource("pods", "Pod", "Namespaced")]},
                ]},
            ],
        });
        let read = read(&document.to_string());
        let paths: Vec<&str> = read.iter().map(|(path, _)| &**path).collect();
        assert_eq!(paths, ["/apis/demo.dev/v1", "/api/v1"]);
        let plurals: Vec<&str> = read[0].1.iter().map(|r| r.plural()).collect();
        assert_eq!(plurals, ["widgets", "planets"]);
        assert_eq!(read[0].1[1].scope(), Scope::Cluster);
        assert_eq!(read[0].1[0].gvk(), &Gvk::new("demo.dev", "v1", "Widget"));
    }

    #[test]
    fn other_documents_say_nothing() {
        for text in [
            "",
            "{}",
            r#"{"kind":"APIGroupList","groups":[]}"#,
            "404 page not found",
        ] {
            assert!(read(text).is_empty(), "{text}");
        }
    }
}
