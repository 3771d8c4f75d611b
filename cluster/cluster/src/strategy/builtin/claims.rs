//! PersistentVolumeClaims.
//!
//! Source: `k8s.io/kubernetes/pkg/api/persistentvolumeclaim`.

use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use super::parts::{at, is_void};

/// Keeps the two members for the source of the data the same.
///
/// The older one names a claim or a snapshot; another one that is not there yet was never read.
pub(in crate::strategy) fn prepare(object: &mut Object, old: Option<&Object>) {
    let was_used = old.is_some_and(|old| {
        let members = ["dataSource", "dataSourceRef"].iter();
        members
            .into_iter()
            .any(|member| !is_void(at(old, &["spec", member])))
    });
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    // Data of other namespaces is for a feature that is off.
    let reference_was_used = old.is_some_and(|old| !is_void(at(old, &["spec", "dataSourceRef"])));
    let elsewhere = spec
        .get("dataSourceRef")
        .and_then(|reference| reference.get("namespace"));
    if !reference_was_used && !is_void(elsewhere) {
        spec.remove("dataSourceRef");
    }
    let alone = is_void(spec.get("dataSourceRef"));
    let unknown = spec
        .get("dataSource")
        .is_some_and(|source| !is_known(source));
    if !was_used && alone && unknown {
        spec.remove("dataSource");
    }
    let copied = |source: &Value| json!({"kind": source["kind"], "name": source["name"], "apiGroup": source["apiGroup"]});
    match (spec.get("dataSource"), spec.get("dataSourceRef")) {
        (Some(source), None) => {
            let reference = copied(source);
            spec.insert("dataSourceRef".into(), reference);
        }
        // The older member cannot name an object in another namespace.
        (None, Some(reference)) if is_void(reference.get("namespace")) => {
            let source = copied(reference);
            spec.insert("dataSource".into(), source);
        }
        _ => {}
    }
}

fn is_known(source: &Value) -> bool {
    let group = source["apiGroup"].as_str().unwrap_or_default();
    matches!(
        (group, source["kind"].as_str().unwrap_or_default()),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}
