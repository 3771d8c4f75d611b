//! Compares two states of an object, field by field.

use lariat_cache::CachedObject;
use serde_json::{Value, json};

/// The maximum number of fields reported.
const MOST: usize = 8;

/// Returns the content of a state; null if it cannot be read.
pub(super) fn content(object: &CachedObject) -> Value {
    let json = object.json().unwrap_or_default();
    serde_json::from_slice(&json).unwrap_or_default()
}

/// Returns the metadata of a state, in an object of its own.
pub(super) fn metadata(object: &CachedObject) -> Value {
    json!({"metadata": content(object)["metadata"].take()})
}

/// The path of a field. A key in it may contain dots.
pub(super) type Path = Vec<String>;

/// Returns the fields that differ, such as `status.phase`; at most eight.
///
/// Fields that differ after every write are left out.
pub(super) fn changed(before: &Value, after: &Value) -> Vec<Path> {
    let mut paths = all_changed(before, after);
    paths.sort();
    paths.truncate(MOST);
    paths
}

/// Returns all fields that differ, except those that differ after every write.
pub(super) fn all_changed(before: &Value, after: &Value) -> Vec<Path> {
    let mut paths = Vec::new();
    compare(&mut Path::new(), before, after, &mut paths);
    paths.retain(|path| !is_bookkeeping(path));
    paths
}

/// Returns the fields that another writer reverted and that this one wrote again.
///
/// `ours` is the state after the last write of this process, `before` and `after` are the states around the present
/// write.
pub(super) fn reverted(ours: &Value, before: &Value, after: &Value) -> Vec<Path> {
    // The fields that another writer has changed since our last write. Those of them that are back at our value now
    // were reverted and written again.
    let theirs = changed(ours, before);
    let mut again = changed(before, after);
    again.retain(|path| theirs.contains(path) && at(ours, path) == at(after, path));
    again
}

/// Returns the field manager of a field, from `managedFields`.
pub(super) fn manager(object: &Value, path: &Path) -> Option<String> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let owner = entries.iter().rev().find(|entry| {
        let mut owned = entry.get("fieldsV1");
        for part in path {
            owned = owned.and_then(|fields| fields.get(format!("f:{part}")));
        }
        owned.is_some()
    })?;
    Some(owner.get("manager")?.as_str()?.to_owned())
}

/// Returns whether the API server changes a field with every write.
fn is_bookkeeping(path: &Path) -> bool {
    const OF_THE_SERVER: [&str; 3] = ["resourceVersion", "generation", "managedFields"];
    match path.as_slice() {
        [first, second, ..] => first == "metadata" && OF_THE_SERVER.contains(&&**second),
        _ => false,
    }
}

fn at<'a>(value: &'a Value, path: &Path) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, part| value.get(part))
}

fn compare(path: &mut Path, before: &Value, after: &Value, paths: &mut Vec<Path>) {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        // Lists are compared as a whole, like scalars.
        if before != after {
            paths.push(path.clone());
        }
        return;
    };
    let removed = old.keys().filter(|key| !new.contains_key(*key));
    for key in new.keys().chain(removed) {
        let (old, new) = (old.get(key), new.get(key));
        path.push(key.clone());
        let (old, new) = (old.unwrap_or(&Value::Null), new.unwrap_or(&Value::Null));
        compare(path, old, new, paths);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_differ_are_named_by_their_path() {
        let before = json!({"metadata": {"resourceVersion": "1"}, "spec": {"a": 1, "b": [1]}});
        let after =
            json!({"metadata": {"resourceVersion": "2"}, "spec": {"b": [2]}, "status": {"c": {}}});
        let named: Vec<String> = changed(&before, &after)
            .iter()
            .map(|path| path.join("."))
            .collect();
        assert_eq!(named, ["spec.a", "spec.b", "status"]);
    }

    #[test]
    fn a_field_is_reverted_only_if_it_is_written_again_as_it_was() {
        let ours = json!({"spec": {"a.dev/x": 1, "b.dev/y": 1}});
        let theirs = json!({"spec": {"a.dev/x": 2, "b.dev/y": 2}});
        let again = json!({"spec": {"a.dev/x": 1, "b.dev/y": 3}});
        assert_eq!(reverted(&ours, &theirs, &again), [["spec", "a.dev/x"]]);
    }

    #[test]
    fn the_manager_of_a_field_is_found() {
        let object = json!({"metadata": {"managedFields": [
            {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "hpa", "fieldsV1": {"f:spec": {"f:image": {}}}},
        ]}});
        assert_eq!(
            manager(&object, &["spec", "replicas"].map(String::from).into()).as_deref(),
            Some("kubectl")
        );
        assert_eq!(
            manager(&object, &["status", "x"].map(String::from).into()),
            None
        );
    }
}
