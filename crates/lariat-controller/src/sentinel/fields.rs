//! Which fields differ between two states of an object.

use lariat_cache::CachedObject;
use serde_json::Value;

/// How many fields are named.
const MOST: usize = 8;

/// The content of a state.
pub(super) fn content(object: &CachedObject) -> Value {
    let json = object.json().unwrap_or_default();
    serde_json::from_slice(&json).unwrap_or_default()
}

/// Returns the paths of fields that differ, such as `status.phase`, but for those that differ with every write.
pub(super) fn changed(before: &Value, after: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    compare("", before, after, &mut paths);
    paths.retain(|path| !is_bookkeeping(path));
    paths.sort();
    paths.truncate(MOST);
    paths
}

/// Returns the fields that somebody else undid after our write, and that we wrote again.
pub(super) fn undone(ours: &Value, before: &Value, after: &Value) -> Vec<String> {
    let theirs = changed(ours, before);
    let mut again = changed(before, after);
    again.retain(|path| theirs.contains(path) && at(ours, path) == at(after, path));
    again
}

/// Returns who owns a field, as far as the object says.
pub(super) fn manager(object: &Value, path: &str) -> Option<String> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let owner = entries.iter().rev().find(|entry| {
        let mut owned = entry.get("fieldsV1");
        for part in path.split('.') {
            owned = owned.and_then(|fields| fields.get(format!("f:{part}")));
        }
        owned.is_some()
    })?;
    Some(owner.get("manager")?.as_str()?.to_owned())
}

fn is_bookkeeping(path: &str) -> bool {
    let ours = ["metadata.resourceVersion", "metadata.generation"];
    ours.contains(&path) || path.starts_with("metadata.managedFields")
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(value, |value, part| value.get(part))
}

fn compare(path: &str, before: &Value, after: &Value, paths: &mut Vec<String>) {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        if before != after {
            paths.push(path.to_owned());
        }
        return;
    };
    let removed = old.keys().filter(|key| !new.contains_key(*key));
    for key in new.keys().chain(removed) {
        let inner = match path {
            "" => key.clone(),
            _ => format!("{path}.{key}"),
        };
        let (old, new) = (old.get(key), new.get(key));
        compare(
            &inner,
            old.unwrap_or(&Value::Null),
            new.unwrap_or(&Value::Null),
            paths,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_that_differ_are_named_by_their_path() {
        let before = json!({"metadata": {"resourceVersion": "1"}, "spec": {"a": 1, "b": [1]}});
        let after =
            json!({"metadata": {"resourceVersion": "2"}, "spec": {"b": [2]}, "status": {"c": {}}});
        let expected = ["spec.a", "spec.b", "status"];
        assert_eq!(changed(&before, &after), expected);
    }

    #[test]
    fn a_field_is_undone_only_if_it_is_written_again_as_it_was() {
        let ours = json!({"spec": {"a": 1, "b": 1}});
        let theirs = json!({"spec": {"a": 2, "b": 2}});
        let again = json!({"spec": {"a": 1, "b": 3}});
        assert_eq!(undone(&ours, &theirs, &again), ["spec.a"]);
    }

    #[test]
    fn the_manager_of_a_field_is_found() {
        let object = json!({"metadata": {"managedFields": [
            {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "hpa", "fieldsV1": {"f:spec": {"f:image": {}}}},
        ]}});
        assert_eq!(
            manager(&object, "spec.replicas").as_deref(),
            Some("kubectl")
        );
        assert_eq!(manager(&object, "status.x"), None);
    }
}
