//! Paths as OpenAPI v3 has them.

use serde_json::{Map, Value, json};

use super::media;
use super::operation::{ApiOperation, Path, Subject};
use super::parameters::type_of;

/// Describes the operations of a path.
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

fn describe_operation(operation: &ApiOperation) -> Value {
    let content = content(&media::produced(operation), &operation.answers);
    let mut responses = json!({
        "200": {"description": "OK", "content": content},
        "401": {"description": "Unauthorized"},
    });
    for (code, description) in others(operation) {
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
    if let Some(body) = body(operation) {
        document["requestBody"] = body;
    }
    if let Some((action, kind)) = &operation.about {
        document["x-kubernetes-action"] = (*action).into();
        document["x-kubernetes-group-version-kind"] = kind.clone();
    }
    document
}

/// Returns the other codes with which an operation answers an object.
pub(super) fn others(operation: &ApiOperation) -> &'static [(&'static str, &'static str)] {
    let action = operation.about.as_ref().map(|(action, _)| *action);
    match operation.method {
        "post" => &[("201", "Created"), ("202", "Accepted")],
        "patch" if operation.subject == Subject::Custom => &[],
        "put" | "patch" => &[("201", "Created")],
        "delete" if action == Some("delete") => &[("202", "Accepted")],
        _ => &[],
    }
}

fn body(operation: &ApiOperation) -> Option<Value> {
    let (name, is_required) = operation.sends.schema()?;
    let mut body = json!({"content": content(&media::consumed(operation), &name)});
    if is_required {
        body["required"] = true.into();
    }
    Some(body)
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
