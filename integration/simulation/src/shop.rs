//! Shops: the custom kind of the trial's operator, and their desired children.

use std::collections::BTreeMap;

use lariat_cluster::StoredObject;
use lariat_core::{Gvk, ObjectKey};
use serde_json::{Value, json};

/// The operator's name: its field manager, and a label of what it applies.
pub(crate) const OPERATOR: &str = "shopkeeper";

/// The finalizer of shops.
pub(crate) const FINALIZER: &str = "sim.dev/ledger";

/// The condition in which the reconciler reports errors.
pub(crate) const READY: &str = "Ready";

/// The label of applied objects with the uid of their owner.
pub(crate) const OWNER_UID: &str = "lariat.dev/owner-uid";

/// The namespace of ledgers, which foreign clients leave alone.
pub(crate) const LEDGERS: &str = "kube-public";

/// The reason of the Event that is published of a shop once everything is in order.
pub(crate) const SETTLED: &str = "Settled";

/// The suffixes of names of children that a spec may list.
pub(crate) const SUFFIXES: [&str; 4] = ["a", "b", "c", "d"];

/// Returns the kind.
pub(crate) fn gvk() -> Gvk {
    Gvk::new("sim.dev", "v1", "Shop")
}

pub(crate) fn config_maps() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

pub(crate) fn secrets() -> Gvk {
    Gvk::new("", "v1", "Secret")
}

/// Makes a spec of a random number.
pub(crate) fn spec(random: u64) -> Value {
    let children: Vec<&str> = SUFFIXES
        .iter()
        .enumerate()
        // The lowest four bits choose the children; the number and the flag use the bits above.
        .filter(|(at, _)| random >> at & 1 == 1)
        .map(|(_, suffix)| *suffix)
        .collect();
    json!({"spec": {
        "children": children, "number": (random >> 4) % 5, "flag": (random >> 8) & 1 == 1,
    }})
}

/// Returns the key of the ledger of a shop, which its cleanup writes.
pub(crate) fn ledger(uid: &str) -> ObjectKey {
    ObjectKey::namespaced(LEDGERS, &format!("ledger-{uid}"))
}

/// Returns whether a shop should have the finalizer; an unwanted one stays.
pub(crate) fn wants_finalizer(shop: &Value) -> bool {
    shop["spec"]["number"] != 4
}

/// The objects that a shop wants, by the name of the set they are in.
///
/// Names with a number change with the spec, so that there is something to prune. With the flag set, objects have the
/// names under which foreign clients create theirs.
pub(crate) fn wanted(key: &ObjectKey, shop: &Value) -> [(&'static str, Vec<Value>); 2] {
    let (name, spec) = (key.name(), &shop["spec"]);
    let namespace = key.namespace().unwrap_or("default");
    let number = spec["number"].as_u64().unwrap_or_default();
    let config = |name: String| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace, "labels": {"sim.dev/shop": key.name()}},
            "data": {"number": number.to_string()},
        })
    };
    let secret = |name: String| {
        // As the server keeps it: "0" to "4" in base64.
        let encoded = ["MA==", "MQ==", "Mg==", "Mw==", "NA=="][number as usize % 5];
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "namespace": namespace},
            "data": {"number": encoded},
        })
    };
    let suffixes = spec["children"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let mut maps: Vec<Value> = suffixes
        .map(|each| config(format!("{name}-{each}")))
        .collect();
    maps.push(config(format!("{name}-v{number}")));
    let mut secrets = vec![secret(format!("{name}-key"))];
    if spec["flag"] == true {
        // Foreign clients use names without a suffix, so a shop with the flag set collides with them.
        maps.push(config(name.to_owned()));
        secrets.push(secret(name.to_owned()));
    }
    [("stock", maps), ("keys", secrets)]
}

/// Returns the children that a shop wants, by kind and key.
pub(crate) fn wanted_by_key(key: &ObjectKey, shop: &Value) -> BTreeMap<(Gvk, ObjectKey), Value> {
    let all = wanted(key, shop)
        .into_iter()
        .flat_map(|(_, objects)| objects);
    let by_key = all.map(|object| {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
        let namespace = text("/metadata/namespace").unwrap_or_default();
        let key = ObjectKey::namespaced(namespace, text("/metadata/name").unwrap_or_default());
        let is_secret = object["kind"] == "Secret";
        let gvk = if is_secret { secrets() } else { config_maps() };
        ((gvk, key), object)
    });
    by_key.collect()
}

/// Returns the JSON of an object the server stores.
pub(crate) fn json_of(object: &StoredObject) -> Value {
    serde_json::from_slice(&object.json()).unwrap_or_default()
}

/// Returns whether a shop has the finalizer.
pub(crate) fn has_finalizer(shop: &Value) -> bool {
    let finalizers = shop["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|all| all.iter().any(|each| each == FINALIZER))
}
