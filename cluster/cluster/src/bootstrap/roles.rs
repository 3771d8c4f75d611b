//! Reads the table of roles and bindings.

use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use crate::strategy::{RolePart, aggregated};

pub(super) const GROUP: &str = "rbac.authorization.k8s.io";

const TABLE: &str = include_str!("roles.txt");

/// The label that aggregates a role into the one named by its suffix.
const LABEL: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// Returns all roles and bindings, each with the plural of its kind.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    let mut all: Vec<(&'static str, Value)> = Vec::new();
    let lines = TABLE
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !line.starts_with(' ') {
            all.extend(object(&words));
        // An indented line is a rule of the role above it.
        } else if let (Some((_, role)), Some(rule)) = (all.last_mut(), rule(&words))
            && let Some(rules) = role["rules"].as_array_mut()
        {
            rules.push(rule);
        }
    }
    // A role may have the rules of one that has those of others.
    for name in ["view", "edit", "admin"] {
        aggregate(&mut all, name);
    }
    all
}

fn aggregate(all: &mut [(&'static str, Value)], name: &str) {
    let roles = all.iter().filter(|each| each.0 == "clusterroles");
    let parts: Vec<RolePart<'_, &Value>> = roles.map(|(_, role)| part(role)).collect();
    let role = parts.iter().find(|part| part.name == name);
    let role = role.and_then(|part| part.source.as_object());
    let rules = role.and_then(|role| {
        aggregated(role, &parts, |role| {
            role["rules"].as_array().cloned().unwrap_or_default()
        })
    });
    let is_it =
        |each: &&mut (&str, Value)| each.0 == "clusterroles" && each.1["metadata"]["name"] == name;
    if let (Some(rules), Some((_, role))) = (rules, all.iter_mut().find(is_it)) {
        role["rules"] = rules.into();
    }
}

fn part(role: &Value) -> RolePart<'_, &Value> {
    let labels = role["metadata"]["labels"].as_object().into_iter().flatten();
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    RolePart {
        name: role["metadata"]["name"].as_str().unwrap_or_default(),
        labels: labels
            .map(|(key, value)| (key.clone(), text(value)))
            .collect(),
        source: role,
    }
}

/// Makes the object that a line begins.
fn object(words: &[&str]) -> Option<(&'static str, Value)> {
    let (kind, name, rest) = match words {
        [kind, name, rest @ ..] => (*kind, *name, rest),
        _ => return None,
    };
    let mut metadata = json!({
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    });
    let name = match name.split_once('/') {
        Some((namespace, name)) => {
            metadata["namespace"] = namespace.into();
            name
        }
        None => name,
    };
    metadata["name"] = name.into();
    let mut object = Object::new();
    let plural = match kind {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        "ClusterRoleBinding" => "clusterrolebindings",
        _ => "rolebindings",
    };
    if let Some(kind) = kind.strip_suffix("Binding") {
        let (role, subjects) = rest.split_first()?;
        let reference = json!({"apiGroup": GROUP, "kind": kind, "name": role});
        object.insert("roleRef".into(), reference);
        let subjects: Vec<Value> = subjects.iter().filter_map(|text| subject(text)).collect();
        if !subjects.is_empty() {
            object.insert("subjects".into(), subjects.into());
        }
    } else {
        object.insert("rules".into(), json!([]));
        for word in rest {
            if let Some(other) = word.strip_prefix("to-") {
                metadata["labels"][format!("{LABEL}{other}")] = "true".into();
            } else if let Some(label) = word.strip_prefix("from-") {
                let selector = json!({"matchLabels": {format!("{LABEL}{label}"): "true"}});
                let selectors = json!({"clusterRoleSelectors": [selector]});
                object.insert("aggregationRule".into(), selectors);
            }
        }
    }
    object.insert("kind".into(), kind.into());
    object.insert("apiVersion".into(), format!("{GROUP}/v1").into());
    object.insert("metadata".into(), metadata);
    Some((plural, object.into()))
}

fn subject(text: &str) -> Option<Value> {
    let (kind, name) = text.split_once(':')?;
    Some(match kind {
        "account" => {
            let (namespace, name) = name.split_once('/')?;
            json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
        }
        "group" => json!({"apiGroup": GROUP, "kind": "Group", "name": name}),
        _ => json!({"apiGroup": GROUP, "kind": "User", "name": name}),
    })
}

fn rule(words: &[&str]) -> Option<Value> {
    let [verbs, groups, resources, names @ ..] = words else {
        return None;
    };
    let list = |text: &str| -> Vec<String> { text.split(',').map(str::to_owned).collect() };
    let verbs = match *verbs {
        "read" => list("get,list,watch"),
        "write" => list("create,delete,deletecollection,patch,update"),
        "full" => list("create,delete,deletecollection,get,list,patch,update,watch"),
        verbs => list(verbs),
    };
    if *groups == "url" {
        return Some(json!({"verbs": verbs, "nonResourceURLs": list(resources)}));
    }
    let group = |name: &str| {
        if name == "core" {
            String::new()
        } else {
            name.to_owned()
        }
    };
    let groups: Vec<String> = groups.split(',').map(group).collect();
    let mut rule = json!({"verbs": verbs, "apiGroups": groups, "resources": list(resources)});
    if let Some(names) = names.first() {
        rule["resourceNames"] = list(names).into();
    }
    Some(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_what_a_real_server_makes() {
        let all = all();
        let count = |plural: &str| all.iter().filter(|each| each.0 == plural).count();
        let counts = [
            "clusterroles",
            "clusterrolebindings",
            "roles",
            "rolebindings",
        ]
        .map(count);
        assert_eq!(counts, [69, 50, 7, 7]);
        let rules = |name: &str| {
            let role = all
                .iter()
                .find(|(_, each)| each["metadata"]["name"] == name);
            role.unwrap().1["rules"].as_array().unwrap().clone()
        };
        assert_eq!(rules("cluster-admin").len(), 2);
        assert_eq!(
            rules("cluster-admin")[1],
            json!({"verbs": ["*"], "nonResourceURLs": ["*"]})
        );
        assert_eq!(
            ["view", "edit", "admin"].map(|name| rules(name).len()),
            [12, 27, 29]
        );
        assert_eq!(
            rules("system:aggregate-to-view")[3]["apiGroups"],
            json!(["", "events.k8s.io"])
        );
    }
}
