//! Permissions as the rules of a role.

use std::collections::BTreeMap;

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::permission::Permission;

/// Returns permissions as sorted RBAC rules.
///
/// Resources of one group with the same verbs share a rule. The namespaces are left out: they are those of the role.
pub(crate) fn rules(permissions: &[Permission]) -> Vec<PolicyRule> {
    let mut merged: BTreeMap<RuleKey<'_>, Vec<String>> = BTreeMap::new();
    for (resource, verbs) in verbs(permissions) {
        let (group, path, names) = resource;
        let resources = merged.entry((group, verbs, names)).or_default();
        resources.push(path);
    }
    let mut rules: Vec<PolicyRule> = merged
        .into_iter()
        .map(|((group, verbs, names), mut resources)| {
            resources.sort();
            PolicyRule {
                api_groups: Some(vec![group.to_owned()]),
                resources: Some(resources),
                resource_names: (!names.is_empty()).then(|| names.to_vec()),
                verbs,
                ..PolicyRule::default()
            }
        })
        .collect();
    // A fixed order, so that printed manifests change only with the permissions.
    rules.sort_by_cached_key(|rule| {
        (
            rule.api_groups.clone(),
            rule.resources.clone(),
            rule.resource_names.clone(),
        )
    });
    rules
}

/// The group, verbs and names that the resources of a rule have in common.
type RuleKey<'a> = (&'a str, Vec<String>, &'a [String]);

/// The group, path and names of a resource.
type ResourceKey<'a> = (&'a str, String, &'a [String]);

/// Collects the verbs of each resource.
///
/// A verb on some names is left out if it is needed on all names anyway.
fn verbs(permissions: &[Permission]) -> BTreeMap<ResourceKey<'_>, Vec<String>> {
    let mut verbs_of: BTreeMap<ResourceKey<'_>, Vec<String>> = BTreeMap::new();
    for permission in permissions {
        let resource = (
            permission.group.as_str(),
            permission.path(),
            permission.names.as_slice(),
        );
        let verbs = verbs_of.entry(resource).or_default();
        verbs.extend(permission.verbs.keys().cloned());
        verbs.sort();
        verbs.dedup();
    }
    // Verbs that are granted on all names make the same verbs on some names redundant.
    let everywhere: BTreeMap<(&str, String), Vec<String>> = verbs_of
        .iter()
        .filter(|((_, _, names), _)| names.is_empty())
        .map(|((group, path, _), verbs)| ((*group, path.clone()), verbs.clone()))
        .collect();
    for ((group, path, names), verbs) in &mut verbs_of {
        if let Some(all) = everywhere
            .get(&(*group, path.clone()))
            .filter(|_| !names.is_empty())
        {
            verbs.retain(|verb| !all.contains(verb));
        }
    }
    verbs_of.retain(|_, verbs| !verbs.is_empty());
    verbs_of
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn permission(group: &str, path: &str, verbs: &[&str], names: &[&str]) -> Permission {
        let (resource, subresource) = path.split_once('/').unwrap_or((path, ""));
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Permission {
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            names: texts(names),
            namespaces: Vec::new(),
            verbs: verbs
                .iter()
                .map(|verb| ((*verb).to_owned(), BTreeSet::new()))
                .collect(),
        }
    }

    #[test]
    fn resources_with_the_same_verbs_are_one_rule() {
        let rules = rules(&[
            permission("apps", "deployments", &["list", "watch"], &[]),
            permission("", "pods", &["watch", "list"], &[]),
            permission("", "config", &["list", "watch"], &[]),
            permission("", "pods", &["delete"], &["a"]),
            permission("", "pods", &["list"], &["a"]),
            permission("", "pods/status", &["patch"], &[]),
        ]);
        let written: Vec<String> = rules
            .iter()
            .map(|rule| {
                let texts =
                    |texts: &Option<Vec<String>>| texts.as_deref().unwrap_or_default().join(" ");
                let names = texts(&rule.resource_names);
                format!(
                    "{}/{} {names}: {}",
                    texts(&rule.api_groups),
                    texts(&rule.resources),
                    rule.verbs.join(" ")
                )
            })
            .collect();
        assert_eq!(
            written,
            [
                "/config pods : list watch",
                "/pods a: delete",
                "/pods/status : patch",
                "apps/deployments : list watch",
            ]
        );
    }
}
