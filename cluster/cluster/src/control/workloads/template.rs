//! Creates Pods from templates.

use lariat_core::fnv1a_32;
use serde_json::{Value, json};

use super::reconcile::Reconcile;

/// The characters that a hash is written in: as in generated names.
const CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Returns the Pod that the template of a workload describes, controlled by it.
///
/// It has no name yet.
pub(super) fn pod(owner: &Reconcile<'_>) -> Value {
    let template = owner.at("/spec/template");
    let mut metadata = json!({
        "generateName": format!("{}-", owner.name()),
        "ownerReferences": [owner.controller_reference()],
    });
    // As GetPodFromTemplate, which takes over no other metadata.
    for member in ["labels", "annotations", "finalizers"] {
        if !template["metadata"][member].is_null() {
            metadata[member] = template["metadata"][member].clone();
        }
    }
    json!({
        "kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": template["spec"],
    })
}

/// Sets a label of an object.
pub(super) fn label(object: &mut Value, name: &str, value: &str) {
    set(object, "labels", name, value);
}

/// Sets an annotation of an object.
pub(super) fn annotate(object: &mut Value, name: &str, value: &str) {
    set(object, "annotations", name, value);
}

fn set(object: &mut Value, member: &str, name: &str, value: &str) {
    let map = &mut object["metadata"][member];
    if !map.is_object() {
        *map = json!({});
    }
    map[name] = value.into();
}

/// Returns the hash of a template, which labels its Pods.
///
/// It is not the hash a real cluster computes, which depends on how Go prints the template; it has its
/// form.
pub(super) fn hash(template: &Value, collisions: i64) -> String {
    let digits = fnv1a_32(format!("{template}{collisions}").as_bytes()).to_string();
    // As rand.SafeEncodeString.
    let encode = |digit: u8| char::from(CHARACTERS[usize::from(digit) % CHARACTERS.len()]);
    digits.bytes().map(encode).collect()
}

/// Returns a number of Pods from a number or a percentage of all.
pub(super) fn share(given: &Value, default_percent: i64, all: i64, rounds_up: bool) -> i64 {
    let percent = match given {
        Value::Number(number) => {
            return number.as_i64().unwrap_or(0).clamp(0, i64::from(i32::MAX));
        }
        Value::String(text) => text.trim_end_matches('%').parse().unwrap_or(0),
        _ => default_percent,
    };
    let hundredfold = all.saturating_mul(percent.max(0));
    if rounds_up {
        hundredfold.saturating_add(99) / 100
    } else {
        hundredfold / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_numbers_or_percents() {
        for (given, all, up, expected) in [
            (json!(3), 10, true, 3),
            (json!("25%"), 10, true, 3),
            (json!("25%"), 10, false, 2),
            (json!(null), 4, true, 1),
            (json!("x"), 4, true, 0),
            (json!(-1), 4, true, 0),
        ] {
            assert_eq!(share(&given, 25, all, up), expected, "{given}");
        }
    }

    #[test]
    fn a_hash_is_a_part_of_a_name_and_depends_on_collisions() {
        let template = json!({"spec": {"containers": []}});
        let first = hash(&template, 0);
        assert_eq!(first, hash(&template, 0));
        assert_ne!(first, hash(&template, 1));
        assert!(first.bytes().all(|byte| CHARACTERS.contains(&byte)));
    }
}
