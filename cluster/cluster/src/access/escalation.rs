//! Finds rules that a user would grant without having them.
//!
//! Source: `ConfirmNoEscalation` and `Covers` in `k8s.io/component-helpers/auth/rbac/validation`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::rbac::{self, texts};
use super::user::User;
use crate::store::Store;

/// Describes the rules that a user may not grant in a namespace, if any.
pub(crate) fn missing(
    store: &Store,
    user: &User,
    namespace: Option<&str>,
    rules: &[Value],
) -> Option<String> {
    let (own, unresolved) = rbac::all_rules(store, user, namespace);
    let mut missing: Vec<Value> = Vec::new();
    for part in rules.iter().flat_map(parts) {
        if !own.iter().any(|rule| covers(rule, &part)) {
            join(&mut missing, part);
        }
    }
    if missing.is_empty() {
        return None;
    }
    let lines: BTreeSet<String> = missing.iter().map(describe).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    let mut message = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name(),
        quoted(user.groups().iter().map(String::as_str)),
        lines.join("\n")
    );
    if !unresolved.is_empty() {
        message.push_str(&format!("; resolution errors: [{unresolved}]"));
    }
    Some(message)
}

/// Breaks a rule down into rules about one thing each.
fn parts(rule: &Value) -> Vec<Value> {
    let mut parts = Vec::new();
    for verb in texts(rule, "verbs") {
        for url in texts(rule, "nonResourceURLs") {
            parts.push(json!({"nonResourceURLs": [url], "verbs": [verb]}));
        }
    }
    let names = texts(rule, "resourceNames");
    for group in texts(rule, "apiGroups") {
        for resource in texts(rule, "resources") {
            for verb in texts(rule, "verbs") {
                let part = json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]});
                if names.is_empty() {
                    parts.push(part);
                    continue;
                }
                parts.extend(names.iter().map(|name| {
                    let mut part = part.clone();
                    part["resourceNames"] = json!([name]);
                    part
                }));
            }
        }
    }
    parts
}

/// Adds a missing permission, merged into a rule of the same resource if possible.
fn join(missing: &mut Vec<Value>, part: Value) {
    let same = |rule: &&mut Value| {
        ["apiGroups", "resources", "resourceNames", "nonResourceURLs"]
            .iter()
            .all(|member| rule[*member] == part[*member])
    };
    let is_path = !texts(&part, "nonResourceURLs").is_empty();
    // As CompactRules, which leaves rules about paths alone.
    let known = missing.iter_mut().filter(|_| !is_path).find(same);
    match known.and_then(|rule| rule["verbs"].as_array_mut()) {
        Some(verbs) => verbs.extend(part["verbs"].as_array().cloned().unwrap_or_default()),
        None => missing.push(part),
    }
}

/// Returns whether a rule allows all that another about one thing does.
fn covers(rule: &Value, part: &Value) -> bool {
    let all = |member: &str| {
        let own = texts(rule, member);
        own.contains(&"*") || texts(part, member).iter().all(|each| own.contains(each))
    };
    let urls = texts(rule, "nonResourceURLs");
    let path = |url: &&str| urls.iter().any(|own| rbac::covers_path(own, url));
    let resources = texts(rule, "resources");
    let resource = |name: &&str| {
        let everywhere = name.split_once('/').map(|(_, part)| format!("*/{part}"));
        let everywhere = everywhere.as_deref();
        resources
            .iter()
            .any(|own| matches!(own, &"*") || own == name || Some(*own) == everywhere)
    };
    // A rule without names covers every name, so one with names never covers it.
    let (names, own_names) = (texts(part, "resourceNames"), texts(rule, "resourceNames"));
    all("verbs")
        && all("apiGroups")
        && texts(part, "resources").iter().all(resource)
        && texts(part, "nonResourceURLs").iter().all(path)
        && (own_names.is_empty()
            || (!names.is_empty() && names.iter().all(|name| own_names.contains(name))))
}

fn describe(rule: &Value) -> String {
    let members = [
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("NonResourceURLs", "nonResourceURLs"),
        ("ResourceNames", "resourceNames"),
        ("Verbs", "verbs"),
    ];
    let lists = members.iter().filter_map(|(name, member)| {
        let values = texts(rule, member);
        (!values.is_empty()).then(|| format!("{name}:{}", quoted(values.into_iter())))
    });
    let lists: Vec<String> = lists.collect();
    format!("{{{}}}", lists.join(", "))
}

/// Writes texts as Go's `%q` does.
fn quoted<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(own: &Value, wanted: &Value, expected: &[&str]) {
        let mut missing = Vec::new();
        for part in parts(wanted) {
            if !covers(own, &part) {
                join(&mut missing, part);
            }
        }
        let missing: Vec<String> = missing.iter().map(describe).collect();
        assert_eq!(missing, expected);
    }

    #[test]
    fn what_a_rule_does_not_cover_is_named() {
        let rule = |groups: Value, resources: Value, verbs: Value, names: Value| json!({"apiGroups": groups, "resources": resources, "verbs": verbs, "resourceNames": names});
        let own = rule(
            json!([""]),
            json!(["pods"]),
            json!(["get", "list"]),
            json!([]),
        );
        check(&own, &own, &[]);
        let more = rule(
            json!([""]),
            json!(["pods", "pods/log"]),
            json!(["get", "delete", "watch"]),
            json!([]),
        );
        check(
            &own,
            &more,
            &[
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}"#,
                r#"{APIGroups:[""], Resources:["pods/log"], Verbs:["get" "delete" "watch"]}"#,
            ],
        );
        let named = rule(json!([""]), json!(["pods"]), json!(["get"]), json!(["a"]));
        check(&own, &named, &[]);
        check(&named, &named, &[]);
        check(
            &named,
            &own,
            &[r#"{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}"#],
        );
        let all = rule(json!(["*"]), json!(["*"]), json!(["*"]), json!([]));
        check(&all, &more, &[]);
        check(
            &own,
            &all,
            &[r#"{APIGroups:["*"], Resources:["*"], Verbs:["*"]}"#],
        );
        let paths = json!({"nonResourceURLs": ["/a/*"], "verbs": ["get"]});
        check(
            &paths,
            &json!({"nonResourceURLs": ["/a/b"], "verbs": ["get"]}),
            &[],
        );
        let stars = json!({"nonResourceURLs": ["/a/**"], "verbs": ["get"]});
        check(&stars, &paths, &[]);
        check(&paths, &stars, &[]);
        check(
            &paths,
            &json!({"nonResourceURLs": ["/b"], "verbs": ["get"]}),
            &[r#"{NonResourceURLs:["/b"], Verbs:["get"]}"#],
        );
    }
}
