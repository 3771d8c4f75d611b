//! The zeros that Go writes of fields that hold nothing.

use serde_json::{Map, Value};

use super::resolve::TypeRef;
use super::types::{Scalar, Type, Zero};

/// Fills in the zero values that Go writes for absent fields, at every depth.
///
/// Structs that are absent stay so unless Go has no way to leave them out. Types of custom resources have no zeros.
pub fn fill(typed: TypeRef<'_>, object: &mut Map<String, Value>) {
    fields(typed, object, Empty::Kept);
}

/// Fills in zero values as after a round trip through protobuf.
///
/// The encoding in storage has no empty lists and maps.
pub fn store(typed: TypeRef<'_>, object: &mut Map<String, Value>) {
    fields(typed, object, Empty::Null);
}

/// The treatment of empty lists and maps that Go writes in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Empty {
    Kept,
    Null,
}

fn fields(typed: TypeRef<'_>, object: &mut Map<String, Value>, empty: Empty) {
    let Some(Type::Struct(known)) = typed.get() else {
        return;
    };
    // What is there is kept, and only its own fields are filled in; an absent optional structure stays absent.
    for (name, value) in object.iter_mut() {
        if matches!(value, Value::Object(_) | Value::Array(_))
            && let Some(field) = known.field(name)
        {
            inside(typed.at(field.type_id), value, empty);
        }
    }
    for field in known.always_written() {
        let below = typed.at(field.type_id);
        let is_absent = object.get(&*field.name).is_none_or(|value| {
            // Protobuf writes nothing for an empty list, so after storing it is null like one that was never set.
            value.is_null() || (empty == Empty::Null && is_empty(below, value))
        });
        if is_absent {
            let value = match field.zero {
                Zero::Written => zero(below),
                // A pointer without `omitempty`: it has no zero other than null.
                _ => Value::Null,
            };
            object.insert(field.name.to_string(), value);
        }
    }
}

fn is_empty(typed: TypeRef<'_>, value: &Value) -> bool {
    match (typed.get(), value) {
        (Some(Type::List(_)), Value::Array(items)) => items.is_empty(),
        (Some(Type::Map(_)), Value::Object(entries)) => entries.is_empty(),
        _ => false,
    }
}

/// Adds and removes fields as Go's encoder does, by the object's own type.
///
/// An object of no built-in kind stays as it is.
#[must_use]
pub fn as_go_writes(mut object: Map<String, Value>) -> Map<String, Value> {
    let text = |member| object.get(member).and_then(Value::as_str);
    let schema = super::builtin(
        text("apiVersion").unwrap_or_default(),
        text("kind").unwrap_or_default(),
    );
    if let Some(schema) = schema {
        let unread = object.clone();
        if super::decode(schema.root(), &mut object).is_err() {
            // Decoding changes the object before it fails, so the copy is returned.
            return unread;
        }
        fill(schema.root(), &mut object);
    }
    object
}

/// Fills in the zeros of a value.
fn inside(typed: TypeRef<'_>, value: &mut Value, empty: Empty) {
    match (typed.get(), value) {
        (Some(Type::Struct(_)), Value::Object(object)) => fields(typed, object, empty),
        (Some(Type::List(_)), Value::Array(items)) => {
            let item = typed.item();
            items
                .iter_mut()
                .for_each(|value| inside(item, value, empty));
        }
        (Some(Type::Map(map)), Value::Object(entries)) => {
            let below = typed.at(map.value);
            let entries = entries.values_mut();
            entries.for_each(|value| inside(below, value, empty));
        }
        _ => {}
    }
}

/// Returns the zero of a type, as Go writes it.
fn zero(typed: TypeRef<'_>) -> Value {
    match typed.get() {
        Some(Type::Struct(_)) => {
            let mut object = Map::new();
            fill(typed, &mut object);
            Value::Object(object)
        }
        Some(Type::Scalar(scalar)) => match scalar {
            Scalar::String => "".into(),
            Scalar::Bool => false.into(),
            Scalar::Int32 | Scalar::Int64 | Scalar::Number | Scalar::IntOrString => 0.into(),
            Scalar::Quantity => "0".into(),
            // A nil slice and a zero time are null in Go's JSON.
            Scalar::Bytes | Scalar::Time | Scalar::MicroTime => Value::Null,
        },
        Some(Type::List(_) | Type::Map(_) | Type::Any) | None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::builtin;

    fn check(kind: (&str, &str), object: Value, expected: &Value) {
        let schema = builtin(kind.0, kind.1).unwrap();
        let Value::Object(mut object) = object else {
            panic!("{object} is no object");
        };
        fill(schema.root(), &mut object);
        assert_eq!(Value::Object(object), *expected);
    }

    #[test]
    fn go_writes_structs_lists_and_times_that_hold_nothing() {
        check(
            ("apps/v1", "Deployment"),
            json!({}),
            &json!({"metadata": {}, "status": {}, "spec": {"selector": null, "strategy": {},
                "template": {"metadata": {}, "spec": {"containers": null}}}}),
        );
        check(
            ("v1", "Pod"),
            json!({"metadata": {}, "spec": {"containers": [{"name": "a", "env": [{"name": "b",
                "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]}]},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
            &json!({"metadata": {}, "spec": {"containers": [{"name": "a", "resources": {}, "env": [{"name": "b",
                "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}}]}]},
                "status": {"conditions": [{"type": "Ready", "status": "True", "lastProbeTime": null,
                    "lastTransitionTime": null}]}}),
        );
        check(
            ("autoscaling/v2", "HorizontalPodAutoscaler"),
            json!({"spec": {"scaleTargetRef": {"kind": "a", "name": "b"}, "maxReplicas": 3}}),
            &json!({"metadata": {}, "spec": {"scaleTargetRef": {"kind": "a", "name": "b"}, "maxReplicas": 3},
                "status": {"desiredReplicas": 0, "currentMetrics": null}}),
        );
        let mut role = json!({"rules": []}).as_object().cloned().unwrap();
        let schema = builtin("rbac.authorization.k8s.io/v1", "Role").unwrap();
        fill(schema.root(), &mut role);
        assert_eq!(role["rules"], json!([]));
        store(schema.root(), &mut role);
        assert_eq!(role["rules"], Value::Null);
        check(
            ("rbac.authorization.k8s.io/v1", "Role"),
            json!({"metadata": {"ownerReferences": [{"name": "a"}]}, "rules": [{}]}),
            &json!({"metadata": {"ownerReferences": [{"name": "a", "apiVersion": "", "kind": "", "uid": ""}]},
                "rules": [{"verbs": null}]}),
        );
    }
}
