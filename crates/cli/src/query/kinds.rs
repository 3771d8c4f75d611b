//! The choice of a kind by its name.

use anyhow::{Result, bail};
use kube::Client;
use lariat_core::ResourceKind;

use super::discovery::served;

/// The length of the common prefix from which on a kind is suggested.
const ALIKE: usize = 3;

/// A kind that can be listed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kind {
    pub(super) resource: ResourceKind,
    /// The name of one of them, as `pod`.
    pub(super) singular: String,
    pub(super) short_names: Vec<String>,
    /// Whether it can be watched, as caches need it.
    pub(super) is_watchable: bool,
}

impl Kind {
    /// Returns its name as the user may write it, with the group.
    fn full_name(&self) -> String {
        let (plural, group) = (self.resource.plural(), self.resource.gvk().group());
        match group {
            "" => plural.to_owned(),
            group => format!("{plural}.{group}"),
        }
    }

    /// Returns whether a name matches, optionally with version and group.
    fn is_called(&self, name: &str) -> bool {
        let gvk = self.resource.gvk();
        let own = [self.resource.plural(), &self.singular, gvk.kind()];
        let short = self.short_names.iter().map(String::as_str);
        let mut names = own.into_iter().chain(short);
        names.any(|own| {
            let rest = name
                // `get` instead of an index, as the length may lie within a letter of the given name.
                .get(..own.len())
                .filter(|start| start.eq_ignore_ascii_case(own))
                .map(|_| &name[own.len()..]);
            let Some(rest) = rest else {
                return false;
            };
            let group = rest.strip_prefix('.');
            let versioned = format!("{}.{}", gvk.version(), gvk.group());
            rest.is_empty() || group.is_some_and(|group| group == gvk.group() || group == versioned)
        })
    }
}

/// Finds a kind by its name, plural or short name, optionally with its group.
pub(super) async fn find(client: &Client, name: &str) -> Result<Kind> {
    let kinds = served(client).await?;
    choose(&kinds, name)
}

fn choose(kinds: &[Kind], name: &str) -> Result<Kind> {
    let called: Vec<&Kind> = kinds.iter().filter(|kind| kind.is_called(name)).collect();
    let Some(first) = called.first() else {
        let lower = name.to_lowercase();
        let stem = lower.split('.').next().unwrap_or_default();
        let readable = kinds.iter().filter(|kind| kind.is_watchable);
        let mut all: Vec<String> = readable.map(Kind::full_name).collect();
        all.sort();
        let start: String = stem.chars().take(ALIKE).collect();
        let is_near = |known: &&String| start.len() == ALIKE && known.contains(&start);
        // A common beginning is enough here: this is only a hint.
        let near: Vec<String> = all.iter().filter(is_near).cloned().collect();
        let start = format!("the cluster has no kind {name:?} that can be listed;");
        if !near.is_empty() {
            bail!("{start} did you mean {}?", near.join(" or "));
        }
        bail!("{start} is its CRD installed? It has {}", all.join(", "));
    };
    // As in kubectl, the core group wins, and other groups must be named.
    if first.resource.gvk().group().is_empty() || called.len() == 1 {
        if !first.is_watchable {
            let name = first.full_name();
            bail!(
                "{name} can be listed and cannot be watched, so there is no cache of it to query; use kubectl get {name}"
            );
        }
        return Ok((*first).clone());
    }
    let names: Vec<String> = called.iter().map(|kind| kind.full_name()).collect();
    // One that is served under the name of an older group is the same: its own group comes first in discovery.
    bail!(
        "{name:?} may be {}: name the group as well",
        names.join(" or ")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::discovery::{aggregated, of_version};
    use super::*;

    fn kinds() -> Vec<Kind> {
        let resource = |plural: &str, kind: &str, short: &[&str], verbs: &[&str]| {
            json!({"resource": plural, "scope": "Namespaced", "verbs": verbs, "shortNames": short,
                "responseKind": {"group": "", "version": "", "kind": kind}, "singularResource": kind.to_lowercase()})
        };
        let both = &["list", "watch"][..];
        let group = |name: &str, resources: Vec<serde_json::Value>| json!({"metadata": {"name": name}, "versions": [{"version": "v1", "resources": resources}]});
        let document = json!({"kind": "APIGroupDiscoveryList", "items": [
            group("", vec![resource("pods", "Pod", &["po"], both), resource("events", "Event", &["ev"], both),
                resource("componentstatuses", "ComponentStatus", &["cs"], &["get", "list"])]),
            group("apps", vec![resource("deployments", "Deployment", &["deploy"], both), resource("reviews", "Review", &[], &["create"])]),
            group("events.k8s.io", vec![resource("events", "Event", &["ev"], both)]),
            group("a.dev", vec![resource("things", "Thing", &[], both)]),
            group("b.dev", vec![resource("things", "Thing", &[], both)]),
        ]});
        aggregated(&document.to_string()).unwrap()
    }

    #[track_caller]
    fn check(name: &str, expected: &str) {
        let found =
            choose(&kinds(), name).map_or_else(|error| error.to_string(), |kind| kind.full_name());
        assert_eq!(found, expected, "{name}");
    }

    #[test]
    fn kinds_have_many_names() {
        for name in ["pods", "Pod", "pod", "PODS", "po"] {
            check(name, "pods");
        }
        for name in [
            "deployments.apps",
            "deploy",
            "Deployment.apps",
            "deployment.v1.apps",
        ] {
            check(name, "deployments.apps");
        }
        // The core group wins, as with kubectl.
        check("events", "events");
        check("ev.events.k8s.io", "events.events.k8s.io");
        check("things.b.dev", "things.b.dev");
    }

    #[test]
    fn a_name_that_is_unknown_or_ambiguous_is_an_error_with_those_that_are_known() {
        check(
            "things",
            "\"things\" may be things.a.dev or things.b.dev: name the group as well",
        );
        check(
            "deploymnets",
            "the cluster has no kind \"deploymnets\" that can be listed; did you mean deployments.apps?",
        );
        check(
            "x",
            "the cluster has no kind \"x\" that can be listed; is its CRD installed? It has deployments.apps, events, \
             events.events.k8s.io, pods, things.a.dev, things.b.dev",
        );
        check(
            "deployments.extensions",
            "the cluster has no kind \"deployments.extensions\" that can be listed; did you mean deployments.apps?",
        );
    }

    #[test]
    fn unwatchable_kind_is_an_error_of_its_own() {
        let expected = "componentstatuses can be listed and cannot be watched, so there is no cache of it to query; use \
                        kubectl get componentstatuses";
        for name in ["componentstatuses", "cs"] {
            check(name, expected);
        }
    }

    #[test]
    fn servers_without_aggregated_discovery_are_understood() {
        let text = json!({"resources": [
            {"name": "pods", "kind": "Pod", "namespaced": true, "verbs": ["list", "watch"], "shortNames": ["po"]},
            {"name": "pods/status", "kind": "Pod", "namespaced": true, "verbs": ["get"]},
        ]});
        let kinds = of_version("v1", &text.to_string());
        assert_eq!(kinds.len(), 1);
        assert_eq!(choose(&kinds, "po").unwrap().singular, "pod");
        assert_eq!(
            aggregated(&json!({"kind": "APIGroupList", "groups": []}).to_string()),
            None
        );
    }
}
