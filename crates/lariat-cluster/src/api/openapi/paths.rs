//! Paths as OpenAPI v3 has them.

use serde_json::{Map, Value, json};

use super::operations::{Operation, Path, Sends, type_of};

const TYPES: [&str; 2] = ["application/json", "application/yaml"];

/// Describes what can be done at a path.
pub(super) fn describe(path: &Path) -> Value {
    let mut document: Map<String, Value> = path
        .operations
        .iter()
        .map(|operation| (operation.method.to_owned(), describe_operation(operation)))
        .collect();
    let in_path = ["name", "namespace"].into_iter();
    let mut parameters: Vec<Value> = in_path
        .filter(|name| path.path.contains(&format!("{{{name}}}")))
        .map(|name| {
            let mut parameter = parameter(name, "path");
            parameter["required"] = true.into();
            parameter
        })
        .collect();
    // Discovery has no `pretty`.
    if path.operations.iter().any(|each| each.about.is_some()) {
        parameters.push(parameter("pretty", "query"));
        document.insert("parameters".into(), parameters.into());
    }
    document.into()
}

fn describe_operation(operation: &Operation) -> Value {
    let is_watch = operation.id.starts_with("watch");
    let mut types = TYPES.to_vec();
    if is_watch {
        types.push("application/json;stream=watch");
    }
    let content = content(&types, &operation.answers);
    let mut responses = json!({
        "200": {"description": "OK", "content": content},
        "401": {"description": "Unauthorized"},
    });
    for (code, description) in others(operation.method) {
        responses[*code] = json!({"description": description, "content": content});
    }
    let mut document = json!({
        "tags": [operation.tag], "description": operation.description,
        "operationId": operation.id, "responses": responses,
    });
    if !operation.parameters.is_empty() {
        let parameters = operation.parameters.iter();
        document["parameters"] = parameters.map(|name| parameter(name, "query")).collect();
    }
    if let Some(body) = body(&operation.sends) {
        document["requestBody"] = body;
    }
    if let Some((action, kind)) = &operation.about {
        document["x-kubernetes-action"] = (*action).into();
        document["x-kubernetes-group-version-kind"] = kind.clone();
    }
    document
}

/// Returns the other codes with which a method answers an object.
pub(super) fn others(method: &str) -> &'static [(&'static str, &'static str)] {
    match method {
        "post" => &[("201", "Created"), ("202", "Accepted")],
        "put" | "patch" => &[("201", "Created")],
        "delete" => &[("202", "Accepted")],
        _ => &[],
    }
}

fn body(sends: &Sends) -> Option<Value> {
    match sends {
        Sends::Nothing => None,
        Sends::Body(name) => Some(json!({"content": content(&["*/*"], name), "required": true})),
        Sends::Optional(name) => Some(json!({"content": content(&["*/*"], name)})),
        Sends::Patch { strategic } => {
            let name = super::names::shared_name("Patch");
            Some(json!({"content": content(patches(*strategic), &name), "required": true}))
        }
    }
}

/// Returns the types of patches there are.
pub(super) fn patches(strategic: bool) -> &'static [&'static str] {
    let all = &[
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ];
    if strategic { all } else { &all[..3] }
}

fn content(types: &[&str], schema: &str) -> Value {
    let schema = json!({"schema": {"$ref": format!("#/components/schemas/{schema}")}});
    types
        .iter()
        .map(|each| ((*each).to_owned(), schema.clone()))
        .collect()
}

fn parameter(name: &str, place: &str) -> Value {
    json!({
        "name": name, "in": place, "schema": {"type": type_of(name), "uniqueItems": true},
    })
}
