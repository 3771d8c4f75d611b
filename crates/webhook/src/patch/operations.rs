//! The JSON patch operations between two values.

use serde::Serialize;
use serde_json::Value;

/// An operation of a JSON patch (RFC 6902).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(super) enum PatchOperation {
    Add { path: String, value: Value },
    Replace { path: String, value: Value },
    Remove { path: String },
}

/// Returns the operations, which must be applied in order.
pub(super) fn between(old: &Value, new: &Value) -> Vec<PatchOperation> {
    let mut operations = Vec::new();
    compare(String::new(), old, new, &mut operations);
    operations
}

fn compare(path: String, old: &Value, new: &Value, operations: &mut Vec<PatchOperation>) {
    match (old, new) {
        // Equal parts need no operation, so an unchanged object has an empty patch.
        _ if old == new => {}
        (Value::Object(old), Value::Object(new)) => {
            for name in old.keys().filter(|name| !new.contains_key(*name)) {
                // Names may contain `/` and `~`, such as the keys of labels, and are escaped.
                let path = member(&path, name);
                operations.push(PatchOperation::Remove { path });
            }
            for (name, value) in new {
                let path = member(&path, name);
                match old.get(name) {
                    Some(old) => compare(path, old, value, operations),
                    None => operations.push(PatchOperation::Add {
                        path,
                        value: value.clone(),
                    }),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => compare_lists(&path, old, new, operations),
        _ => operations.push(PatchOperation::Replace {
            path,
            value: new.clone(),
        }),
    }
}

/// Compares two lists after removing their common start and end.
///
/// Then an insertion or removal in the middle is one operation, not a change of every later element.
fn compare_lists(path: &str, old: &[Value], new: &[Value], operations: &mut Vec<PatchOperation>) {
    let same = |pair: &(&Value, &Value)| pair.0 == pair.1;
    let start = old.iter().zip(new).take_while(same).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(same)
        .count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    for (index, (old, new)) in old.iter().zip(new).enumerate() {
        compare(format!("{path}/{}", start + index), old, new, operations);
    }
    let both = old.len().min(new.len());
    // All removals have the same index: each one moves the rest of the list forward.
    for _ in both..old.len() {
        let path = format!("{path}/{}", start + both);
        operations.push(PatchOperation::Remove { path });
    }
    for (index, value) in new.iter().enumerate().skip(both) {
        operations.push(PatchOperation::Add {
            path: format!("{path}/{}", start + index),
            value: value.clone(),
        });
    }
}

fn member(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}
