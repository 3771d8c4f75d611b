//! ConfigMaps of about a kilobyte, and the namespaces of all objects.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::managed;
use super::names::{self, hex, role, word};
use super::options::Load;

const CONFIG_MAPS: u64 = 4;
const NAMESPACES: u64 = 5;

pub(super) fn config_map(load: &Load, number: usize) -> Value {
    let mut rng = names::random(load.seed, CONFIG_MAPS, number);
    let (word, role) = (word(&mut rng), role(&mut rng));
    let mut settings = String::new();
    for _ in 0..12 {
        // Writing to a string cannot fail.
        let _ = writeln!(
            settings,
            "{}.{}: \"{}\"",
            names::word(&mut rng),
            names::role(&mut rng),
            hex(&mut rng, 24)
        );
    }
    let created = rng.u32(..86_400);
    let fields = json!({"f:data": {".": {}, "f:settings.yaml": {}}, "f:metadata": {"f:labels": {".": {}, "f:app": {}}}});
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": format!("{word}-{role}-{}", names::suffix(&mut rng, 8)),
            "namespace": names::namespace(number % load.namespace_count()), "uid": names::uid(&mut rng),
            "creationTimestamp": names::time(created), "labels": {"app": format!("{word}-{role}")},
            "managedFields": managed::whole("helm", fields, created),
        },
        "data": {"settings.yaml": settings},
    })
}

pub(super) fn namespace(load: &Load, number: usize) -> Value {
    let mut rng = names::random(load.seed, NAMESPACES, number);
    let name = names::namespace(number);
    let fields =
        json!({"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}});
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": name, "uid": names::uid(&mut rng), "creationTimestamp": names::time(0),
            "labels": {"kubernetes.io/metadata.name": name},
            "managedFields": managed::whole("kubectl-create", fields, 0),
        },
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    })
}
