//! The cluster's entries among those of others.

use serde_json::{Map, Value, json};

/// The name of the cluster, the user and the context.
const NAME: &str = "lariat";

/// The lists of a kubeconfig, and the member that has the content of their entries.
const LISTS: [(&str, &str); 3] = [
    ("clusters", "cluster"),
    ("contexts", "context"),
    ("users", "user"),
];

/// Merges the entries of `own` into a kubeconfig, and selects its context.
///
/// The error continues after the file's name; then the kubeconfig may be partly changed.
pub(super) fn merge(config: &mut Value, own: &Value) -> Result<(), String> {
    if config.is_null() {
        *config = json!({"apiVersion": "v1", "kind": "Config"});
    }
    for (list, content) in LISTS {
        // Without own entries this only tests whether the file could be changed, which `open` asks for.
        let mut entry = entry(&own[list]).cloned().unwrap_or(json!({"name": NAME}));
        if !entry[content].is_object() {
            entry[content] = json!({});
        }
        entry[content]["extensions"] = mark();
        let list_name = list;
        let list = &mut config[list];
        if list.is_null() {
            *list = json!([]);
        }
        let Some(list) = list.as_array_mut() else {
            return Err(format!(
                "has {list_name} that are no list; it stays as it is"
            ));
        };
        match list.iter_mut().find(|each| is_named(each)) {
            // An entry of a run that was killed, and so could not remove it.
            Some(known) if known[content]["extensions"] == mark() => *known = entry,
            Some(_) => {
                return Err(format!(
                    "has an entry {NAME} among its {list_name} that is not of this program; rename it, or give \
                     another file"
                ));
            }
            None => list.push(entry),
        }
    }
    config["current-context"] = NAME.into();
    Ok(())
}

/// Removes the entries of the cluster at a URL; returns whether there were any.
pub(super) fn remove(config: &mut Value, url: &str) -> bool {
    let cluster = entry(&config["clusters"]).map(|entry| &entry["cluster"]);
    // Another `lariat cluster` may have replaced the entries, and needs them still.
    if !cluster.is_some_and(|cluster| cluster["server"] == url && cluster["extensions"] == mark()) {
        return false;
    }
    for (list, content) in LISTS {
        if let Some(list) = config.get_mut(list).and_then(Value::as_array_mut) {
            list.retain(|each| !(is_named(each) && each[content]["extensions"] == mark()));
        }
    }
    if config["current-context"] == NAME {
        // Which context was current before is not known any more, and kubectl must not guess another cluster.
        config["current-context"] = "".into();
    }
    true
}

/// Marks the entries of this program; clients keep the mark.
fn mark() -> Value {
    json!([{"name": "lariat", "extension": {"provider": "lariat cluster"}}])
}

fn entry(list: &Value) -> Option<&Value> {
    list.as_array()?.iter().find(|each| is_named(each))
}

fn is_named(entry: &Value) -> bool {
    entry
        .as_object()
        .and_then(|entry: &Map<String, Value>| entry.get("name"))
        == Some(&NAME.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(server: &str) -> Value {
        json!({
            "clusters": [{"name": "lariat", "cluster": {"server": server}}],
            "contexts": [{"name": "lariat", "context": {"cluster": "lariat", "user": "lariat"}}],
            "users": [{"name": "lariat", "user": {"token": "sesame"}}],
        })
    }

    fn others() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "production", "preferences": {},
            "clusters": [{"name": "production", "cluster": {"server": "https://production.example.com"}}],
            "contexts": [{"name": "production", "context": {"cluster": "production", "user": "admin"}}],
            "users": [{"name": "admin", "user": {"exec": {"command": "login", "args": ["5", "yes"]}}}],
        })
    }

    #[test]
    fn entries_come_beside_those_of_others_and_go_again() {
        let mut config = others();
        merge(&mut config, &own("http://one")).unwrap();
        assert_eq!(config["current-context"], "lariat");
        assert_eq!(config["clusters"][0], others()["clusters"][0]);
        assert_eq!(config["clusters"][1]["cluster"]["server"], "http://one");
        // A later cluster replaces an earlier one, whose end leaves the later one alone.
        merge(&mut config, &own("http://two")).unwrap();
        assert_eq!(config["clusters"].as_array().unwrap().len(), 2);
        assert_eq!(config["clusters"][1]["cluster"]["server"], "http://two");
        assert!(!remove(&mut config, "http://one"));
        assert!(remove(&mut config, "http://two"));
        let mut expected = others();
        expected["current-context"] = "".into();
        assert_eq!(config, expected);
        assert!(!remove(&mut config, "http://two"));
    }

    #[test]
    fn a_context_that_was_chosen_meanwhile_stays_chosen() {
        let mut config = others();
        merge(&mut config, &own("http://one")).unwrap();
        config["current-context"] = "production".into();
        assert!(remove(&mut config, "http://one"));
        assert_eq!(config, others());
    }

    #[test]
    fn a_new_kubeconfig_has_what_one_needs() {
        let mut config = Value::Null;
        merge(&mut config, &own("http://one")).unwrap();
        assert_eq!(
            (&config["apiVersion"], &config["kind"]),
            (&json!("v1"), &json!("Config"))
        );
        assert_eq!(config["users"][0]["user"]["token"], "sesame");
        // Lists may be present and null.
        let mut config = json!({"clusters": null, "contexts": []});
        merge(&mut config, &own("http://one")).unwrap();
        assert_eq!(config["clusters"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn entries_of_the_name_that_are_of_another_are_left_alone() {
        for (list, content) in LISTS {
            let mut config =
                json!({list: [{"name": "lariat", content: {"server": "https://mine"}}]});
            let error = merge(&mut config, &own("http://one")).unwrap_err();
            assert!(
                error.contains(list) && error.contains("rename it"),
                "{error}"
            );
            assert!(!remove(&mut config, "https://mine"));
        }
        let error = merge(&mut json!({"users": {}}), &own("http://one")).unwrap_err();
        assert_eq!(error, "has users that are no list; it stays as it is");
    }
}
