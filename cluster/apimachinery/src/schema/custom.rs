//! The types of custom resources, from the OpenAPI schemas of their CRDs.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::builtin;
use super::resolve::Schema;
use super::types::{
    Field, List, ListKind, Map, PatchStrategy, Scalar, Struct, Type, TypeId, Types, Zero,
};

/// Reads the `openAPIV3Schema` of a version; without one, members may be anything.
///
/// ```
/// use lariat_apimachinery::schema;
/// use serde_json::json;
///
/// let size = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
/// let widget = json!({"type": "object", "properties": {"spec": size}});
/// let types = schema::custom(Some(&widget));
/// let spec = types.root().member("spec").expect("the schema has it");
/// assert!(spec.member("size").is_some());
/// assert!(spec.member("color").is_none());
/// ```
#[must_use]
pub fn custom(schema: Option<&Value>) -> Schema {
    let mut reader = Reader::default();
    let (known, metadata) = builtin::object_meta();
    reader.metadata = Some(reader.import(known, metadata));
    // What the API server assumes for a CRD without a schema.
    let open = serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let root = reader.object(schema.unwrap_or(&open), true, false);
    Schema {
        root: reader.types.add(root),
        types: Arc::new(reader.types),
    }
}

/// Keeps members that a schema does not know, also below it for their owners.
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// A text or a number.
const ANY_SCALAR: Scalar = Scalar::Quantity;

#[derive(Default)]
struct Reader {
    types: Types,
    metadata: Option<TypeId>,
    /// The types imported from the built-in ones, by their ids there.
    imported: HashMap<u32, TypeId>,
}

impl Reader {
    /// Reads a schema; `preserves` if one above it preserves unknown fields.
    fn read(&mut self, schema: &Value, preserves: bool) -> TypeId {
        let is = |keyword: &str| schema[keyword] == Value::Bool(true);
        let preserves = preserves || is(PRESERVE);
        let read = if is("x-kubernetes-int-or-string") {
            // Checked first, since such a schema has no `type`. That of the built-in type admits anything.
            Type::Scalar(ANY_SCALAR)
        } else {
            match schema["type"].as_str() {
                Some("array") => self.list(schema, preserves),
                Some("object") => {
                    self.object(schema, is("x-kubernetes-embedded-resource"), preserves)
                }
                // As in Go, a string with a format other than `byte` is untyped for field ownership.
                Some("string") => match schema["format"].as_str() {
                    None | Some("" | "byte") => Type::Scalar(Scalar::String),
                    Some(_) => Type::Scalar(ANY_SCALAR),
                },
                Some("integer") => Type::Scalar(Scalar::Int64),
                Some("number") => Type::Scalar(Scalar::Number),
                Some("boolean") => Type::Scalar(Scalar::Bool),
                _ => Type::Any,
            }
        };
        self.types.add(read)
    }

    fn list(&mut self, schema: &Value, preserves: bool) -> Type {
        let keys = schema["x-kubernetes-list-map-keys"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        Type::List(List {
            item: self.read(&schema["items"], preserves),
            kind: match schema["x-kubernetes-list-type"].as_str() {
                Some("set") => ListKind::Set,
                Some("map") => ListKind::Map(keys.map(|key| Cow::Owned(key.to_owned())).collect()),
                _ => ListKind::Atomic,
            },
        })
    }

    /// Reads a map or a struct; a resource always has a type and metadata.
    ///
    /// A struct is open, for members of any type, if it or a schema above it preserves unknown fields, or if it has no
    /// properties. Members that are not preserved have owners, although they are pruned.
    ///
    /// Source: `visitSpec` and `parseObject` in `k8s.io/kube-openapi/pkg/schemaconv`.
    fn object(&mut self, schema: &Value, is_resource: bool, preserves: bool) -> Type {
        let atomic = schema["x-kubernetes-map-type"] == "atomic";
        // A structural schema has either these or properties, never both.
        if schema["additionalProperties"].is_object() {
            let value = self.read(&schema["additionalProperties"], preserves);
            return Type::Map(Map { value, atomic });
        }
        let properties = schema["properties"].as_object();
        let has_properties = is_resource || properties.is_some_and(|all| !all.is_empty());
        let preserves = preserves || schema[PRESERVE] == Value::Bool(true);
        let is_open = match &schema["additionalProperties"] {
            Value::Bool(allows) => *allows,
            _ => preserves || !has_properties,
        };
        let required = schema["required"].as_array().into_iter().flatten();
        let required: HashSet<&str> = required.filter_map(Value::as_str).collect();
        let mut fields = Vec::new();
        for (name, property) in properties.into_iter().flatten() {
            // A CRD may restrict these, but their types are always the server's own.
            if is_resource && matches!(&**name, "metadata" | "kind" | "apiVersion") {
                continue;
            }
            fields.push(Field {
                name: Cow::Owned(name.clone()),
                type_id: self.read(property, preserves),
                required: required.contains(name.as_str()),
                default: property.get("default").cloned(),
                values: None,
                patch: PatchStrategy::default(),
                // Custom resources are not decoded into Go types, so a zero is a value like any other.
                zero: Zero::Kept,
                wire: None,
            });
        }
        if is_resource {
            fields.extend(self.resource_fields());
        }
        let open = is_open.then(|| self.types.add(Type::Any));
        Type::Struct(Struct {
            atomic,
            open,
            ..Struct::new(fields)
        })
    }

    fn resource_fields(&mut self) -> Vec<Field> {
        let text = self.types.add(Type::Scalar(Scalar::String));
        let metadata = self.metadata.unwrap_or(text);
        [("apiVersion", text), ("kind", text), ("metadata", metadata)]
            .into_iter()
            .map(|(name, type_id)| Field {
                name: Cow::Borrowed(name),
                type_id,
                required: false,
                default: None,
                values: None,
                patch: PatchStrategy::default(),
                zero: Zero::Kept,
                wire: None,
            })
            .collect()
    }

    /// Copies a type, and the types it refers to, from other types.
    fn import(&mut self, from: &Types, id: TypeId) -> TypeId {
        if let Some(known) = self.imported.get(&id.0) {
            return *known;
        }
        // The id exists before the type is read, so that types that refer to themselves end.
        let place = self.types.add(Type::Any);
        self.imported.insert(id.0, place);
        let mut copy = from.get(id).clone();
        match &mut copy {
            Type::Scalar(_) | Type::Any => {}
            Type::List(list) => list.item = self.import(from, list.item),
            Type::Map(map) => map.value = self.import(from, map.value),
            Type::Struct(fields) => {
                for field in &mut fields.fields {
                    field.type_id = self.import(from, field.type_id);
                }
            }
        }
        self.types.set(place, copy);
        place
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_become_types_that_know_how_they_merge() {
        let schema = custom(Some(&json!({"type": "object", "properties": {"spec": {
        "type": "object", "properties": {
            "ports": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port"], "items": {"type": "object",
                "properties": {"port": {"type": "integer"}}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
        }}}})));
        let spec = schema.root().member("spec").unwrap();
        let Some(Type::List(ports)) = spec.member("ports").unwrap().get() else {
            panic!("no list");
        };
        assert_eq!(ports.kind, ListKind::Map(vec!["port".into()]));
        assert!(spec.member("labels").unwrap().member("x").is_some());
        assert!(spec.member("free").unwrap().member("x").is_some());
        assert!(spec.member("nonsense").is_none());
        let finalizers = schema
            .root()
            .member("metadata")
            .unwrap()
            .member("finalizers")
            .unwrap();
        assert!(matches!(finalizers.get(), Some(Type::List(list)) if list.kind == ListKind::Set));
    }

    #[test]
    fn without_a_schema_members_may_be_anything() {
        let schema = custom(None);
        assert!(schema.root().member("spec").is_some());
        assert!(
            schema
                .root()
                .member("metadata")
                .unwrap()
                .member("nonsense")
                .is_none()
        );
    }
}
