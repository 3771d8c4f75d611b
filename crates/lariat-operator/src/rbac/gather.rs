//! What is needed, from all who need something.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use lariat_cache::{MapperError, Storage};
use lariat_core::{Gvk, Scope};
use parking_lot::Mutex;

use super::permission::Permission;
use super::rule::{Rule, Target};
use crate::crd::Install;
use crate::events::EventApi;
use crate::operator::{Operator, Shared};

/// What was said to be needed.
#[derive(Default)]
pub(crate) struct Needs {
    /// Each with the number of the reconciler that needs it; 0 is the operator.
    rules: Mutex<Vec<(u64, Rule)>>,
    checked_at_start: AtomicBool,
}

impl Needs {
    /// Notes what a reconciler needs.
    pub(crate) fn add(&self, number: u64, rules: impl IntoIterator<Item = Rule>) {
        let rules = rules.into_iter().map(|rule| (number, rule));
        self.rules.lock().extend(rules);
    }

    /// Forgets what a reconciler needed.
    pub(crate) fn remove(&self, number: u64) {
        self.rules.lock().retain(|(of, _)| *of != number);
    }

    /// Returns whether somebody needs to delete objects of a kind, in whichever version: who applies or prunes it.
    pub(crate) fn has_deletions_of(&self, gvk: &Gvk) -> bool {
        let rules = self.rules.lock();
        rules.iter().any(|(_, rule)| rule.is_of_deletions(gvk))
    }

    pub(super) fn check_at_start(&self) {
        self.checked_at_start.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_checked_at_start(&self) -> bool {
        self.checked_at_start.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Notes that something is needed; the rule should say [why](Rule::because).
    pub(crate) fn need(&self, rule: Rule) {
        self.needs.add(0, [rule]);
    }
}

/// What is needed.
pub(super) struct Gathered {
    pub(super) permissions: Vec<Permission>,
    /// The kinds whose resources are not known, and what is needed of them neither.
    pub(super) unknown: Vec<MapperError>,
}

impl Gathered {
    pub(super) fn complete(mut self) -> Result<Vec<Permission>, MapperError> {
        match self.unknown.pop() {
            Some(error) => Err(error),
            None => Ok(self.permissions),
        }
    }
}

/// Where a permission holds: group, resource, subresource, names, namespaces.
type Place = (String, String, String, Vec<String>, Vec<String>);

/// Asks everybody.
pub(super) async fn permissions(operator: &Operator) -> Gathered {
    let rules = operator.shared().needs.rules.lock().clone();
    let mut rules: Vec<Rule> = rules.into_iter().map(|(_, rule)| rule).collect();
    rules.extend(definitions(operator));
    rules.extend(warm_restart(operator));
    rules.extend(leases(operator));
    let caches = caches(operator);
    // At last, so that those who say why come first.
    rules.extend(caches.rules);
    let mut places: BTreeMap<Place, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    let mut unknown = BTreeMap::new();
    for rule in rules {
        let (is_implied, gvk) = (rule.because.is_none(), rule.gvk().cloned());
        let (group, plural, is_namespaced) = match resource(operator, &rule.target).await {
            Ok(resource) => resource,
            Err(error) => {
                unknown.insert(gvk, error);
                continue;
            }
        };
        let selected = gvk.as_ref().and_then(|gvk| caches.namespaces.get(gvk));
        let mut namespaces = match (rule.namespaces.is_empty(), is_namespaced) {
            (true, true) => selected.cloned().unwrap_or_default(),
            _ => rule.namespaces,
        };
        namespaces.sort();
        namespaces.dedup();
        let mut names = rule.names;
        names.sort();
        names.dedup();
        let place = (group, plural.clone(), rule.subresource, names, namespaces);
        let verbs = places.entry(place).or_default();
        for verb in rule.verbs {
            let because = verbs.entry(verb).or_default();
            if !is_implied || because.is_empty() {
                because.insert(
                    rule.because
                        .clone()
                        .unwrap_or_else(|| format!("the cache of {plural}")),
                );
            }
        }
    }
    Gathered {
        permissions: places.into_iter().filter_map(permission).collect(),
        unknown: unknown.into_values().collect(),
    }
}

fn permission((place, verbs): (Place, BTreeMap<String, BTreeSet<String>>)) -> Option<Permission> {
    let (group, resource, subresource, names, namespaces) = place;
    let some = !verbs.is_empty();
    some.then_some(Permission {
        group,
        resource,
        subresource,
        names,
        namespaces,
        verbs,
    })
}

/// Returns group and plural, and whether objects are in namespaces.
async fn resource(
    operator: &Operator,
    target: &Target,
) -> Result<(String, String, bool), MapperError> {
    match target {
        Target::Resource { group, plural } => Ok((group.clone(), plural.clone(), true)),
        Target::Events => {
            let group = match operator.shared().events.api() {
                EventApi::Core => "",
                EventApi::Events => "events.k8s.io",
            };
            Ok((group.to_owned(), "events".to_owned(), true))
        }
        Target::Kind(client) => {
            let resource = client.resource().await?;
            let is_namespaced = resource.scope() == Scope::Namespaced;
            Ok((
                resource.gvk().group().to_owned(),
                resource.plural().to_owned(),
                is_namespaced,
            ))
        }
    }
}

/// What the caches need.
struct Caches {
    rules: Vec<Rule>,
    /// To which kinds are restricted.
    namespaces: HashMap<Gvk, Vec<String>>,
}

fn caches(operator: &Operator) -> Caches {
    let caches = operator.factory().caches();
    let (mut rules, mut namespaces) = (Vec::new(), HashMap::new());
    for status in caches.status() {
        let kind = operator.factory().for_kind(&status.gvk);
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

/// Returns the rule for caches that are kept between two runs, which need to know which cluster they are of.
fn warm_restart(operator: &Operator) -> Option<Rule> {
    let rule = || {
        let rule = Rule::on("", "namespaces").named(["kube-system"]);
        rule.verbs(["get"]).because("warm restarts")
    };
    let is_warm = operator.factory().caches().restarts_warm();
    is_warm.then(rule)
}

/// Returns the rules for the leases of the factory.
fn leases(operator: &Operator) -> Vec<Rule> {
    let factory = operator.factory();
    let Some(leadership) = factory.leadership() else {
        return Vec::new();
    };
    let rule = |what| {
        let rule = Rule::on("coordination.k8s.io", "leases").because(what);
        rule.in_namespaces([leadership.namespace()])
    };
    if factory.shards().is_some() {
        // Each member has one with a name of its own, and clears away those of members that are gone.
        let verbs = ["create", "delete", "get", "list", "update", "watch"];
        return vec![rule("the sharding").verbs(verbs)];
    }
    let named = rule("the leader election").named([leadership.name()]);
    vec![
        named.verbs(["get", "update", "watch"]),
        // What is created has no name yet when permission is asked for.
        rule("the leader election").verbs(["create"]),
    ]
}

/// Returns the rules for what is installed.
fn definitions(operator: &Operator) -> Vec<Rule> {
    let (install, names) = operator.shared().definitions.names();
    if names.is_empty() {
        return Vec::new();
    }
    let rule = || {
        let rule = Rule::on("apiextensions.k8s.io", "customresourcedefinitions");
        rule.because("the definitions it installs")
    };
    let (create, named): (bool, &[&str]) = match install {
        Install::CreateOrUpdate => (true, &["get", "patch"]),
        Install::CreateOnly => (true, &["get"]),
        Install::Verify => (false, &["get"]),
    };
    let mut rules = vec![rule().named(names).verbs(named.iter().copied())];
    if create {
        // What is created has no name yet when permission is asked for.
        rules.push(rule().verbs(["create"]));
    }
    rules
}
