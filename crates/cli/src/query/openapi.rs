//! The types of fields, from the OpenAPI documents of the server.

use anyhow::{Result, bail};
use http::Request;
use kube::Client;
use lariat_core::Gvk;
use lariat_sql::{FieldType, Path};
use serde_json::{Map, Value as Json};
use strsim::damerau_levenshtein;

/// The longest chain of references between schemas.
// A bound, because a schema may refer to itself, as that of CRDs does.
const DEEPEST: usize = 20;

/// How many names an error lists.
const MOST_NAMES: usize = 40;

/// The schemas of a group and version, and which of them is that of a kind.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    kind: String,
    schemas: Map<String, Json>,
    /// None if nothing is known.
    root: Option<String>,
}

/// What is at a path.
enum Found<'a> {
    Schema(&'a Json),
    /// A value without a schema.
    Anything,
}

impl Schemas {
    /// Reads the server's OpenAPI documents; types are unknown if it may not.
    pub(super) async fn of(client: &Client, gvk: &Gvk) -> Result<Self> {
        let schemas = match read(client, gvk).await {
            Ok(schemas) => schemas,
            Err(kube::Error::Api(status)) => {
                let (code, message) = (status.code, &status.message);
                eprintln!(
                    "warning: the cluster does not describe {gvk} ({code}: {message}); fields are texts without --field"
                );
                Map::new()
            }
            Err(error) => bail!("cannot read schemas: {}", lariat_core::describe(&error)),
        };
        Ok(Self::new(gvk, schemas))
    }

    fn new(gvk: &Gvk, schemas: Map<String, Json>) -> Self {
        let is_of = |schema: &Json| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array();
            kinds.into_iter().flatten().any(|kind| {
                let is = |member: &str, wanted: &str| kind[member] == wanted;
                is("group", gvk.group()) && is("version", gvk.version()) && is("kind", gvk.kind())
            })
        };
        let root = schemas
            .iter()
            .find(|(_, schema)| is_of(schema))
            .map(|(name, _)| name.clone());
        Self {
            kind: gvk.to_string(),
            root,
            schemas,
        }
    }

    /// Returns the type at a path; text where the schema has none.
    pub(super) fn type_of(&self, path: &Path) -> Result<FieldType> {
        let schema = match self.find(path)? {
            Found::Schema(schema) => schema,
            Found::Anything => return Ok(FieldType::Text),
        };
        let kind = &self.kind;
        if let Some(of) = self.scalar(schema) {
            return Ok(of);
        }
        let resolved = self.resolve(schema);
        match resolved["type"].as_str() {
            Some("array") => bail!("{path} of {kind} is a list: name its elements, as {path}[*]"),
            Some("object") => bail!("{path} of {kind} is no single value; {}", has(resolved)),
            _ => Ok(FieldType::Text),
        }
    }

    /// Returns an error if the schema has no field at a path.
    pub(super) fn check(&self, path: &Path) -> Result<()> {
        self.find(path).map(drop)
    }

    fn find(&self, path: &Path) -> Result<Found<'_>> {
        let root = self.root.as_ref().and_then(|root| self.schemas.get(root));
        let Some(mut schema) = root else {
            return Ok(Found::Anything);
        };
        let steps = path.steps();
        for step in steps.as_array().into_iter().flatten() {
            let resolved = self.resolve(schema);
            let next = match step {
                Json::String(name) => member(resolved, name),
                // An index, a `[*]` or a condition: all of them lead to elements of the same schema.
                _ if resolved["type"] == "array" => resolved.get("items"),
                _ => bail!(
                    "{path} of {}: what is in front of a bracket is no list",
                    self.kind
                ),
            };
            match next {
                Some(next) => schema = next,
                None if is_open(resolved) => return Ok(Found::Anything),
                None => bail!(self.unknown(path, step.as_str().unwrap_or("[]"), resolved)),
            }
        }
        Ok(Found::Schema(schema))
    }

    /// Describes a path with a member that a schema does not have.
    fn unknown(&self, path: &Path, name: &str, schema: &Json) -> String {
        let known = has(schema);
        // In front of the list, which may be long.
        let hint = match nearest(schema, name) {
            Some(near) => format!("did you mean {near}? ({known})"),
            None => known,
        };
        format!(
            "{} has no field {path}: {name} is unknown; {hint}",
            self.kind
        )
    }

    /// Follows references.
    fn resolve<'a>(&'a self, mut schema: &'a Json) -> &'a Json {
        for _ in 0..DEEPEST {
            let next = reference(schema).and_then(|name| self.schemas.get(name));
            match next {
                Some(next) => schema = next,
                None => break,
            }
        }
        schema
    }

    /// Returns the type of a single value.
    fn scalar(&self, schema: &Json) -> Option<FieldType> {
        // Before the reference is followed: the schema of a quantity is a plain string.
        if reference(schema).is_some_and(|name| name.ends_with(".resource.Quantity")) {
            return Some(FieldType::Quantity);
        }
        let schema = self.resolve(schema);
        if schema["x-kubernetes-int-or-string"] == true {
            // Generated CRDs have quantities in this form.
            let pattern = schema["pattern"].as_str().unwrap_or_default();
            let is_quantity = pattern.contains("[KMGTPE]i");
            return Some(if is_quantity {
                FieldType::Quantity
            } else {
                FieldType::Text
            });
        }
        Some(
            match (schema["type"].as_str()?, schema["format"].as_str()) {
                ("integer", _) => FieldType::Integer,
                ("number", _) => FieldType::Real,
                ("boolean", _) => FieldType::Boolean,
                ("string", Some("date-time")) => FieldType::Time,
                ("string", _) => FieldType::Text,
                _ => return None,
            },
        )
    }
}

async fn read(client: &Client, gvk: &Gvk) -> Result<Map<String, Json>, kube::Error> {
    let get = async |path: &str| {
        let request = Request::get(path)
            .body(Vec::new())
            .map_err(kube::Error::HttpError)?;
        client.request::<Json>(request).await
    };
    let index = get("/openapi/v3").await?;
    let path = gvk.api_path();
    let url = &index["paths"][path.trim_start_matches('/')]["serverRelativeURL"];
    let Some(url) = url.as_str() else {
        return Ok(Map::new());
    };
    let mut document = get(url).await?;
    Ok(match document["components"]["schemas"].take() {
        Json::Object(schemas) => schemas,
        _ => Map::new(),
    })
}

/// Returns the name of a referenced schema, from `$ref` or a single `allOf`.
fn reference(schema: &Json) -> Option<&str> {
    let target = schema.get("$ref").or_else(|| {
        // Kubernetes wraps a `$ref` in `allOf` where it adds a description or a default, as a `$ref` has no siblings.
        let all = schema.get("allOf")?.as_array()?;
        all.first()?.get("$ref").filter(|_| all.len() == 1)
    });
    target?.as_str()?.rsplit('/').next()
}

fn member<'a>(schema: &'a Json, name: &str) -> Option<&'a Json> {
    let property = schema["properties"].get(name);
    property.or_else(|| {
        schema
            .get("additionalProperties")
            .filter(|schema| schema.is_object())
    })
}

/// Returns whether an object may have members that its schema does not name.
fn is_open(schema: &Json) -> bool {
    let has_none = schema["properties"]
        .as_object()
        .is_none_or(|properties| properties.is_empty());
    let is_object = schema["type"].as_str().is_none_or(|of| of == "object");
    schema["x-kubernetes-preserve-unknown-fields"] == true
        || schema["additionalProperties"] == true
        // An object without properties is one of which the schema says nothing, such as
        // `metadata.managedFields[*].fieldsV1`.
        || (has_none && is_object)
}

fn members(schema: &Json) -> impl Iterator<Item = &str> {
    let properties = schema["properties"].as_object().into_iter();
    properties.flat_map(|properties| properties.keys().map(String::as_str))
}

/// Returns the member that was probably meant by a name.
fn nearest<'a>(schema: &'a Json, name: &str) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let distances = members(schema)
        .map(|member| (damerau_levenshtein(&member.to_lowercase(), &wanted), member));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    // One mistake for each three letters.
    (distance <= name.chars().count().div_ceil(3)).then_some(nearest)
}

/// Lists the known members.
fn has(schema: &Json) -> String {
    let mut names: Vec<&str> = members(schema).collect();
    if names.is_empty() {
        return "there is nothing below it".to_owned();
    }
    let more = match names.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(MOST_NAMES);
    format!("there is {}{more}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schemas() -> Schemas {
        let reference = |name: &str| json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}], "default": {}});
        let quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity";
        let spec = json!({"type": "object", "properties": {
            "replicas": {"type": "integer", "format": "int32"}, "paused": {"type": "boolean"}, "share": {"type": "number"},
            "node": {"type": "string"}, "port": {"x-kubernetes-int-or-string": true},
            "size": {"x-kubernetes-int-or-string": true, "pattern": "^[0-9]+(([KMGTPE]i)|m)?$"},
            "requests": {"type": "object", "additionalProperties": reference(quantity)},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "items": {"type": "array", "items": {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}}},
            "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }});
        let all = json!({
            "Spec": spec, quantity: {"type": "string"},
            "Thing": {"x-kubernetes-group-version-kind": [{"group": "a.dev", "version": "v1", "kind": "Thing"}],
                "type": "object", "properties": {"spec": reference("Spec")}},
        });
        let Json::Object(all) = all else {
            panic!("it is an object")
        };
        Schemas::new(&Gvk::new("a.dev", "v1", "Thing"), all)
    }

    #[track_caller]
    fn check(path: &str, expected: &str) {
        let of = schemas()
            .type_of(&path.parse().unwrap())
            .map_or_else(|error| error.to_string(), |of| format!("{of:?}"));
        assert_eq!(of, expected, "{path}");
    }

    #[test]
    fn types_are_those_of_the_schema() {
        check("spec.replicas", "Integer");
        check("spec.paused", "Boolean");
        check("spec.share", "Real");
        check("spec.node", "Text");
        check("spec.port", "Text");
        check("spec.size", "Quantity");
        check("spec.requests.memory", "Quantity");
        check("spec.labels[a.b/c]", "Text");
        check("spec.items[*].at", "Time");
        check("spec.items[0].at", "Time");
        check("spec.raw.deep.down", "Text");
    }

    #[test]
    fn a_field_that_is_not_there_is_an_error_with_those_that_are() {
        check(
            "spec.items[*].moment",
            "a.dev/v1 Thing has no field spec.items[*].moment: moment is unknown; there is at",
        );
        check(
            "sepc.node",
            "a.dev/v1 Thing has no field sepc.node: sepc is unknown; did you mean spec? (there is spec)",
        );
        let known = "items, labels, node, paused, port, raw, replicas, requests, share, size";
        check(
            "spec.Replica",
            &format!(
                "a.dev/v1 Thing has no field spec.Replica: Replica is unknown; did you mean replicas? (there is {known})"
            ),
        );
        check(
            "spec.items",
            "spec.items of a.dev/v1 Thing is a list: name its elements, as spec.items[*]",
        );
        check(
            "spec.node[*]",
            "spec.node[*] of a.dev/v1 Thing: what is in front of a bracket is no list",
        );
        check(
            "spec.items[0]",
            "spec.items[0] of a.dev/v1 Thing is no single value; there is at",
        );
    }

    #[test]
    fn without_schemas_all_is_text() {
        let none = Schemas::new(&Gvk::new("", "v1", "Pod"), Map::new());
        let of = none.type_of(&"a.b".parse().unwrap());
        assert_eq!(of.unwrap(), FieldType::Text);
    }
}
