//! Aggregated discovery: all groups in one document.
//!
//! Source: `apidiscovery.k8s.io/v2`, served since Kubernetes 1.30.

use kube::core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery, APIVersionDiscovery};
use lariat_core::{Gvk, ResourceKind, Scope};
use serde::Deserialize;

/// A kind that the API server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) resource: ResourceKind,
    pub(crate) is_listable: bool,
    /// Whether it can be listed and watched, as a cache needs it.
    pub(crate) is_watchable: bool,
}

impl Served {
    pub(super) fn new(resource: ResourceKind, verbs: &[String]) -> Self {
        let has = |wanted: &str| verbs.iter().any(|verb| verb == wanted);
        let is_listable = has("list");
        Self {
            resource,
            is_listable,
            is_watchable: is_listable && has("watch"),
        }
    }
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
    let resource = ResourceKind::new(gvk, &each.resource?, scope);
    Some(Served::new(resource, &each.verbs))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn document_lists_all_groups_and_marks_stale_ones() {
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
        let read = served_kinds(&document.to_string()).unwrap();
        let paths: Vec<(&str, bool)> = read
            .iter()
            .map(|(path, served)| (&**path, served.is_some()))
            .collect();
        let expected = [
            ("/apis/demo.dev/v1", true),
            ("/apis/demo.dev/v2", false),
            ("/api/v1", true),
        ];
        assert_eq!(paths, expected);
        let resources: Vec<_> = read[0].1.iter().flatten().map(|it| &it.resource).collect();
        let plurals: Vec<&str> = resources.iter().map(|it| it.plural()).collect();
        assert_eq!(plurals, ["widgets", "planets"]);
        assert_eq!(resources[1].scope(), Scope::Cluster);
        assert_eq!(resources[0].gvk(), &Gvk::new("demo.dev", "v1", "Widget"));
    }

    #[test]
    fn other_documents_say_nothing() {
        for text in [
            "",
            "{}",
            r#"{"kind":"APIGroupList","groups":[]}"#,
            "404 page not found",
        ] {
            assert!(served_kinds(text).is_none(), "{text}");
        }
    }
}
