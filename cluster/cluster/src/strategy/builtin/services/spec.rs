//! The spec of a Service.

use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use crate::strategy::builtin::parts::at;

/// Returns the spec of a Service, which is made if it is missing.
pub(super) fn spec_mut(object: &mut Object) -> &mut Value {
    object.entry("spec").or_insert_with(|| json!({}))
}

/// Returns the type of a Service.
pub(super) fn kind(object: &Object) -> &str {
    let kind = at(object, &["spec", "type"]).and_then(Value::as_str);
    kind.unwrap_or("ClusterIP")
}

/// Returns whether a Service only names something outside, and so has no address.
pub(super) fn is_external(object: &Object) -> bool {
    kind(object) == "ExternalName"
}

/// Returns whether the nodes need a port for checks of their health.
pub(super) fn needs_check(object: &Object) -> bool {
    let policy = at(object, &["spec", "externalTrafficPolicy"]);
    kind(object) == "LoadBalancer" && policy == Some(&"Local".into())
}

/// Returns the ports of a spec.
pub(super) fn ports(spec: &Object) -> &[Value] {
    let ports = spec.get("ports").and_then(Value::as_array);
    ports.map_or(&[], Vec::as_slice)
}

/// Returns the ports of a spec.
pub(super) fn ports_mut(spec: &mut Object) -> impl Iterator<Item = &mut Object> {
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    let each = ports.into_iter().flatten();
    each.filter_map(Value::as_object_mut)
}

/// Returns the port of the nodes that belongs to a port.
pub(super) fn node_port(port: &Value) -> Option<i64> {
    port.get("nodePort")?.as_i64().filter(|number| *number != 0)
}
