//! The built-in types as schemas of OpenAPI.

use std::collections::BTreeMap;

use serde_json::{Map as Members, Value, json};

use super::builtin::Builtin;
use super::types::{Field, List, ListKind, Map, PatchStrategy, Scalar, Struct, Type, TypeId};

/// The prefixes of type names that `cluster/scripts/types_table.py` shortens in the table.
const PREFIXES: [(&str, &str); 5] = [
    ("meta.", "io.k8s.apimachinery.pkg.apis."),
    ("runtime.", "io.k8s.apimachinery.pkg."),
    ("version.", "io.k8s.apimachinery.pkg."),
    ("apiextensions.", "io.k8s.apiextensions-apiserver.pkg.apis."),
    ("apiregistration.", "io.k8s.kube-aggregator.pkg.apis."),
];
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// Returns the name of the schema of a built-in kind, if the table has the kind.
#[must_use]
pub fn name(api_version: &str, kind: &str) -> Option<String> {
    let types = super::builtin::all();
    let id = *types.kinds.get(&(api_version, kind))?;
    types.name(id).map(full_name)
}

/// Returns the name of a type as Kubernetes has it.
fn full_name(name: &str) -> String {
    // Most types are in `k8s.io/api`, so that is the default.
    let mut prefixes = PREFIXES.iter();
    let prefix = prefixes
        .find(|(beginning, _)| name.starts_with(beginning))
        .map_or("io.k8s.api.", |(_, prefix)| prefix);
    format!("{prefix}{name}")
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Writes schemas of built-in types, each with those it refers to.
///
/// ```
/// use lariat_apimachinery::schema::describe::{self, Describer};
///
/// let mut describer = Describer::new();
/// describer.kind("v1", "ConfigMap");
/// let schemas = describer.finish();
/// let name = describe::name("v1", "ConfigMap").expect("it is built in");
/// assert_eq!(name, "io.k8s.api.core.v1.ConfigMap");
/// assert_eq!(schemas[&name]["properties"]["data"]["type"], "object");
/// // With the types it refers to.
/// assert!(schemas.contains_key("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
/// ```
#[derive(Debug)]
pub struct Describer {
    types: &'static Builtin,
    /// The kinds that a type is, as their groups, versions and names.
    kinds: BTreeMap<TypeId, Vec<Value>>,
    written: Members<String, Value>,
}

impl Default for Describer {
    fn default() -> Self {
        Self::new()
    }
}

impl Describer {
    /// Begins with no schema.
    #[must_use]
    pub fn new() -> Self {
        let types = super::builtin::all();
        let mut kinds: BTreeMap<TypeId, Vec<Value>> = BTreeMap::new();
        for ((api_version, kind), id) in &types.kinds {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let named = json!({"group": group, "kind": kind, "version": version});
            kinds.entry(*id).or_default().push(named);
        }
        Self {
            types,
            kinds,
            written: Members::new(),
        }
    }

    /// Adds the schema of a built-in kind, if the table has the kind.
    pub fn kind(&mut self, api_version: &str, kind: &str) {
        if let Some(id) = self.types.kinds.get(&(api_version, kind)) {
            self.add(*id);
        }
    }

    /// Adds the schemas of types, named as in the table (`meta.v1.ObjectMeta`).
    pub fn types(&mut self, names: &[&str]) {
        let types = self.types;
        for id in names.iter().filter_map(|name| types.by_name.get(name)) {
            self.add(*id);
        }
    }

    /// Returns the schemas by their names.
    #[must_use]
    pub fn finish(self) -> Members<String, Value> {
        self.written
    }

    /// Adds a named type and its references, and returns its name.
    fn add(&mut self, id: TypeId) -> String {
        let name = full_name(self.types.name(id).unwrap_or_default());
        if !self.written.contains_key(&name)
            && let Type::Struct(fields) = self.types.types.get(id)
        {
            // Types refer to themselves, so this one is added before its fields are read.
            self.written.insert(name.clone(), Value::Null);
            // The null is replaced; references to it need its name only.
            let schema = self.structure(id, fields);
            self.written.insert(name.clone(), schema);
        }
        name
    }

    fn structure(&mut self, id: TypeId, fields: &Struct) -> Value {
        let kinds = self.kinds.get(&id).cloned().unwrap_or_default();
        let mut schema = json!({"type": "object"});
        let properties: Members<String, Value> = fields
            .fields()
            .iter()
            // A type with kinds is a root object; fields of roots and of other structures differ in their defaults
            // below.
            .map(|field| (field.name.to_string(), self.field(field, !kinds.is_empty())))
            .collect();
        if !properties.is_empty() {
            schema["properties"] = properties.into();
        }
        let required: Vec<&str> = fields
            .fields()
            .iter()
            .filter(|field| field.required)
            .map(|field| field.name.as_ref())
            .collect();
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        if fields.atomic {
            schema["x-kubernetes-map-type"] = "atomic".into();
        }
        if !kinds.is_empty() {
            schema["x-kubernetes-group-version-kind"] = kinds.into();
        }
        schema
    }

    /// Describes a field of a structure, which may be a kind.
    fn field(&mut self, field: &Field, of_kind: bool) -> Value {
        let types = self.types;
        let read = types.types.get(field.type_id);
        let mut schema = self.value(field.type_id);
        match read {
            Type::List(list) => note_list(list, of_kind && field.name == "items", &mut schema),
            Type::Map(Map { atomic: true, .. }) => {
                schema["x-kubernetes-map-type"] = "atomic".into()
            }
            // Only a copy says that it is granular, since that is the default.
            Type::Struct(_) if types.original(field.type_id) != field.type_id => {
                schema["x-kubernetes-map-type"] = "granular".into();
            }
            // What every object has, even if a client leaves it out.
            Type::Struct(_) if of_kind => schema["default"] = json!({}),
            // A required scalar is no pointer in Go, so leaving it out means its zero.
            Type::Scalar(scalar) if field.required => note_zero(*scalar, &mut schema),
            _ => {}
        }
        if let Some(default) = &field.default {
            schema["default"] = default.clone();
        }
        if let Some(values) = field.values {
            let values = values.split(',').map(|value| value.replace('_', " "));
            // The values are those of the items or entries where the field is a list or a map.
            let limited = match read {
                Type::List(_) => &mut schema["items"],
                Type::Map(_) => &mut schema["additionalProperties"],
                _ => &mut schema,
            };
            limited["enum"] = values.collect();
        }
        note_patch(&field.patch, &mut schema);
        schema
    }

    /// Describes values of a type, wherever they are.
    fn value(&mut self, id: TypeId) -> Value {
        let types = self.types;
        if let Some(alias) = types.aliases.get(&id) {
            return self.named(alias);
        }
        match types.types.get(id) {
            Type::Scalar(scalar) => self.scalar(*scalar),
            Type::Any => json!({}),
            Type::List(list) => json!({"type": "array", "items": self.inner(list.item)}),
            Type::Map(map) => {
                json!({"type": "object", "additionalProperties": self.inner(map.value)})
            }
            // A bare `$ref` could have no siblings such as a default, hence `allOf` around it.
            Type::Struct(_) => json!({"allOf": [reference(&self.add(types.original(id)))]}),
        }
    }

    /// Describes the values of a list or a map.
    fn inner(&mut self, id: TypeId) -> Value {
        let mut schema = self.value(id);
        // Nothing is said of them beside what they are.
        match schema.pointer_mut("/allOf/0") {
            Some(reference) => reference.take(),
            None => schema,
        }
    }

    /// Describes values of a type of which nothing but its name is of interest.
    fn named(&mut self, alias: &str) -> Value {
        let kind = match alias {
            // Their Go types read JSON themselves, so the OpenAPI generator has their form from a method.
            "runtime.RawExtension" | "meta.v1.FieldsV1" => json!({"type": "object"}),
            "meta.v1.Duration" => json!({"type": "string"}),
            _ => json!({}),
        };
        let name = full_name(alias);
        let schema = json!({"allOf": [reference(&name)]});
        self.written.insert(name, kind);
        schema
    }

    fn scalar(&mut self, scalar: Scalar) -> Value {
        let either = |kinds: [&str; 2]| json!({"oneOf": kinds.map(|kind| json!({"type": kind}))});
        let (name, schema) = match scalar {
            Scalar::String => return json!({"type": "string"}),
            Scalar::Int32 => return json!({"type": "integer", "format": "int32"}),
            Scalar::Int64 => return json!({"type": "integer", "format": "int64"}),
            Scalar::Number => return json!({"type": "number", "format": "double"}),
            Scalar::Bool => return json!({"type": "boolean"}),
            Scalar::Bytes => return json!({"type": "string", "format": "byte"}),
            Scalar::Time => (TIME, json!({"type": "string", "format": "date-time"})),
            Scalar::MicroTime => (MICRO_TIME, json!({"type": "string", "format": "date-time"})),
            Scalar::IntOrString => {
                let mut schema = either(["integer", "string"]);
                schema["format"] = "int-or-string".into();
                (INT_OR_STRING, schema)
            }
            Scalar::Quantity => (QUANTITY, either(["string", "number"])),
        };
        self.written.insert(name.into(), schema);
        json!({"allOf": [reference(name)]})
    }
}

/// Adds the default that an absent value has.
fn note_zero(scalar: Scalar, schema: &mut Value) {
    schema["default"] = match scalar {
        Scalar::String => "".into(),
        Scalar::Int32 | Scalar::Int64 | Scalar::Number => 0.into(),
        Scalar::Bool => false.into(),
        _ => return,
    };
}

/// Adds how lists merge; those of objects in lists are never merged.
fn note_list(list: &List, of_objects: bool, schema: &mut Value) {
    let kind = match &list.kind {
        ListKind::Atomic if of_objects => return,
        ListKind::Atomic => "atomic",
        ListKind::Set => "set",
        ListKind::Map(keys) => {
            schema["x-kubernetes-list-map-keys"] = json!(keys);
            "map"
        }
    };
    schema["x-kubernetes-list-type"] = kind.into();
}

fn note_patch(patch: &PatchStrategy, schema: &mut Value) {
    let strategies: Vec<&str> = [
        (patch.merge, "merge"),
        (patch.replace, "replace"),
        (patch.retain_keys, "retainKeys"),
    ]
    .iter()
    .filter(|(is_set, _)| *is_set)
    .map(|(_, name)| *name)
    .collect();
    if !strategies.is_empty() {
        schema["x-kubernetes-patch-strategy"] = strategies.join(",").into();
    }
    if let Some(key) = &patch.key {
        schema["x-kubernetes-patch-merge-key"] = key.as_ref().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(api_version: &str, kind: &str) -> Members<String, Value> {
        let mut describer = Describer::new();
        describer.kind(api_version, kind);
        describer.finish()
    }

    #[test]
    fn every_reference_is_to_a_schema_of_the_same_document() {
        for (api_version, kind) in super::super::builtin::all().kinds.keys() {
            let schemas = of(api_version, kind);
            let text = Value::Object(schemas.clone()).to_string();
            let beginning = "\"#/components/schemas/";
            for rest in text.split(beginning).skip(1) {
                let name = rest.split('"').next().unwrap();
                assert!(schemas[name].is_object(), "{kind}: {name}");
            }
        }
    }

    #[test]
    fn schemas_have_the_names_and_extensions_of_kubernetes() {
        let mut apps = of("apps/v1", "Deployment");
        apps.extend(of("apps/v1", "StatefulSet"));
        let spec = &apps["io.k8s.api.apps.v1.DeploymentSpec"];
        assert_eq!(spec["required"], json!(["selector", "template"]));
        let strategy = &spec["properties"]["strategy"];
        assert_eq!(strategy["x-kubernetes-patch-strategy"], "retainKeys");
        let selector = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
        assert_eq!(
            spec["properties"]["selector"],
            json!({"allOf": [reference(selector)]})
        );
        assert_eq!(apps[selector]["x-kubernetes-map-type"], "atomic");
        assert_eq!(
            strategy["allOf"],
            json!([reference("io.k8s.api.apps.v1.DeploymentStrategy")])
        );
        let kind = &apps["io.k8s.api.apps.v1.DeploymentStrategy"]["properties"]["type"];
        assert_eq!(kind["enum"], json!(["Recreate", "RollingUpdate"]));
        let modes =
            &apps["io.k8s.api.core.v1.PersistentVolumeClaimSpec"]["properties"]["accessModes"];
        assert_eq!(modes["items"]["enum"][0], "ReadOnlyMany");
        let managed = &apps["io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry"];
        let fields = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";
        let found = &managed["properties"]["fieldsV1"];
        assert_eq!(found, &json!({"allOf": [reference(fields)]}));
        let deployment = &apps["io.k8s.api.apps.v1.Deployment"];
        assert_eq!(
            deployment["x-kubernetes-group-version-kind"],
            json!([{"group": "apps", "kind": "Deployment", "version": "v1"}])
        );
        assert_eq!(
            name("apiextensions.k8s.io/v1", "CustomResourceDefinition").as_deref(),
            Some(
                "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.\
                 CustomResourceDefinition"
            )
        );
    }
}
