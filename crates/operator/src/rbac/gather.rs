//! Gathers the permissions of an operator from everything that is registered.
//!
//! The sources are the rules that reconcilers and the operator declare, the caches of the factory, its leases, and warm
//! restarts. Rules on the same resource, names and namespaces are merged into one permission.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lariat_cache::{MapperError, Storage};
use lariat_controller::SharedControllerFactory;
use lariat_core::{Gvk, Scope};

use super::permission::Permission;
use crate::needs::{Rule, Target};

/// The sources of the permissions.
pub(crate) struct Gathering<'a> {
    pub(crate) factory: &'a SharedControllerFactory,
    /// The rules that reconcilers and the operator declare.
    pub(crate) rules: Vec<Rule>,
    /// The API group in which Events are written.
    pub(crate) events_group: &'static str,
}

/// The gathered permissions.
pub(crate) struct Gathered {
    pub(crate) permissions: Vec<Permission>,
    /// The errors of kinds whose resource is unknown; their permissions are missing.
    pub(crate) unknown: Vec<MapperError>,
}

/// The key under which rules are merged.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PermissionScope {
    group: String,
    resource: String,
    subresource: String,
    names: Vec<String>,
    namespaces: Vec<String>,
}

/// Verbs, each with the reasons for it.
type Verbs = BTreeMap<String, BTreeSet<String>>;

/// A resource as RBAC rules name it.
struct Resource {
    group: String,
    plural: String,
    is_namespaced: bool,
}

impl Gathered {
    /// Returns the permissions, or an error if some are missing.
    pub(crate) fn complete(mut self) -> Result<Vec<Permission>, MapperError> {
        match self.unknown.pop() {
            Some(error) => Err(error),
            None => Ok(self.permissions),
        }
    }
}

impl Gathering<'_> {
    /// Gathers the permissions from all sources.
    pub(crate) async fn permissions(self) -> Gathered {
        let mut rules = self.rules;
        rules.extend(warm_restart(self.factory));
        rules.extend(leases(self.factory));
        let caches = caches(self.factory);
        let of_events = caches.all_namespaces();
        // Caches come last, so that their reason is used only for verbs that nothing else needs.
        rules.extend(caches.rules);
        let mut scopes: BTreeMap<PermissionScope, Verbs> = BTreeMap::new();
        let mut unknown = BTreeMap::new();
        for rule in rules {
            let gvk = rule.gvk().cloned();
            let resource = match Resource::of(&rule.target, self.events_group).await {
                Ok(resource) => resource,
                Err(error) => {
                    unknown.insert(gvk, error);
                    continue;
                }
            };
            // The API server grants list and watch in single namespaces only by Roles of these, so permissions on the
            // kind are restricted like its cache.
            let namespaces = if !rule.namespaces.is_empty() || !resource.is_namespaced {
                rule.namespaces
            } else if matches!(rule.target, Target::Events) {
                of_events.clone()
            } else {
                let selected = gvk.as_ref().and_then(|gvk| caches.namespaces.get(gvk));
                selected.cloned().unwrap_or_default()
            };
            let because = rule.because;
            let cache = format!("the cache of {}", resource.plural);
            let scope = PermissionScope {
                group: resource.group,
                resource: resource.plural,
                subresource: rule.subresource,
                names: sorted(rule.names),
                namespaces: sorted(namespaces),
            };
            // One permission per scope, with the union of the verbs and of their reasons.
            let verbs = scopes.entry(scope).or_default();
            for verb in rule.verbs {
                let all = verbs.entry(verb).or_default();
                match &because {
                    Some(because) => _ = all.insert(because.clone()),
                    // Everything is cached anyway, so this reason is given only where there is no other.
                    None if all.is_empty() => _ = all.insert(cache.clone()),
                    None => {}
                }
            }
        }
        Gathered {
            permissions: scopes
                .into_iter()
                .filter_map(|(scope, verbs)| permission(scope, verbs))
                .collect(),
            unknown: unknown.into_values().collect(),
        }
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names.dedup();
    names
}

fn permission(scope: PermissionScope, verbs: Verbs) -> Option<Permission> {
    let some = !verbs.is_empty();
    some.then_some(Permission {
        group: scope.group,
        resource: scope.resource,
        subresource: scope.subresource,
        names: scope.names,
        namespaces: scope.namespaces,
        verbs,
    })
}

impl Resource {
    async fn of(target: &Target, events_group: &str) -> Result<Self, MapperError> {
        let (group, plural, is_namespaced) = match target {
            Target::Resource { group, plural } => (group.clone(), plural.clone(), true),
            Target::Events => (events_group.to_owned(), "events".to_owned(), true),
            Target::Kind(client) => {
                let resource = client.resource().await?;
                let is_namespaced = resource.scope() == Scope::Namespaced;
                let (gvk, plural) = (resource.gvk(), resource.plural());
                (gvk.group().to_owned(), plural.to_owned(), is_namespaced)
            }
        };
        Ok(Self {
            group,
            plural,
            is_namespaced,
        })
    }
}

/// The permissions that caches need.
struct Caches {
    rules: Vec<Rule>,
    /// The namespaces to which the caches of kinds are restricted.
    namespaces: HashMap<Gvk, Vec<String>>,
}

impl Caches {
    /// Returns the namespaces of all caches; none if one of them is not restricted.
    ///
    /// An Event is in the namespace of its object, and that of an object without a namespace in `default`.
    fn all_namespaces(&self) -> Vec<String> {
        if self.namespaces.values().any(Vec::is_empty) {
            return Vec::new();
        }
        self.namespaces.values().flatten().cloned().collect()
    }
}

/// Returns the permissions of all caches of a factory.
fn caches(factory: &SharedControllerFactory) -> Caches {
    let caches = factory.caches();
    let (mut rules, mut namespaces) = (Vec::new(), HashMap::new());
    for status in caches.status() {
        let kind = factory.for_kind(&status.gvk);
        let mut rule = Rule::of(&kind).verbs(["list", "watch"]);
        if status.storage == Storage::OnDemand {
            rule = rule.verbs(["get"]);
        }
        rules.push(rule);
        let selection = caches.for_kind(&status.gvk).selection();
        let selected = selection.namespaces().iter();
        namespaces.insert(status.gvk, selected.map(|name| name.to_string()).collect());
    }
    Caches { rules, namespaces }
}

/// Returns the rule for caches that are saved between runs.
///
/// They read the uid of the namespace `kube-system`, which identifies the cluster.
fn warm_restart(factory: &SharedControllerFactory) -> Option<Rule> {
    let rule = || {
        let rule = Rule::on("", "namespaces").named(["kube-system"]);
        rule.verbs(["get"]).because("warm restarts")
    };
    let is_warm = factory.caches().restarts_warm();
    is_warm.then(rule)
}

/// Returns the rules for the leases of the factory.
fn leases(factory: &SharedControllerFactory) -> Vec<Rule> {
    let Some(leadership) = factory.leadership() else {
        return Vec::new();
    };
    let rule = |what| {
        let rule = Rule::on("coordination.k8s.io", "leases").because(what);
        rule.in_namespaces([leadership.namespace()])
    };
    if factory.shards().is_some() {
        // Each member has a lease under its own name, and deletes those of former members.
        let verbs = ["create", "delete", "get", "list", "update", "watch"];
        return vec![rule("the sharding").verbs(verbs)];
    }
    let named = rule("the leader election").named([leadership.name()]);
    vec![
        named.verbs(["get", "update", "watch"]),
        // Creations cannot be restricted by name.
        rule("the leader election").verbs(["create"]),
    ]
}
