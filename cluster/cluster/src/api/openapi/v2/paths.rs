//! Paths as OpenAPI v2 has them.

use serde_json::{Map, Value, json};

use super::super::media;
use super::super::operation::{ApiOperation, Path, Sends};
use super::super::parameters::{self, type_of};
use super::super::paths::others;

const BODY: &str = "body";

/// Describes the operations of a path.
pub(super) fn describe(path: &Path) -> Value {
    let mut document: Map<String, Value> = path
        .operations
        .iter()
        .map(|operation| (operation.method.to_owned(), describe_operation(operation)))
        .collect();
    let is_in_path = |name: &&str| path.path.contains(&format!("{{{name}}}"));
    let mut parameters: Vec<Value> = ["name", "namespace"]
        .into_iter()
        .filter(is_in_path)
        .map(reference)
        .collect();
    if path.operations.iter().any(|each| each.about.is_some()) {
        parameters.push(reference("pretty"));
        document.insert("parameters".into(), parameters.into());
    }
    document.into()
}

/// Describes the parameters that operations refer to.
pub(super) fn parameters() -> Value {
    let describe = |name: &str, place: &str| json!({"name": name, "in": place, "type": type_of(name), "uniqueItems": true});
    let in_query = parameters::all().chain(["pretty"]);
    let in_query = in_query.map(|name| (name.to_owned(), describe(name, "query")));
    let in_path = ["name", "namespace"].into_iter().map(|name| {
        let mut parameter = describe(name, "path");
        parameter["required"] = true.into();
        (name.to_owned(), parameter)
    });
    in_query.chain(in_path).collect()
}

fn describe_operation(operation: &ApiOperation) -> Value {
    let schema = schema(&operation.answers);
    let mut responses = json!({
        "200": {"description": "OK", "schema": schema},
        "401": {"description": "Unauthorized"},
    });
    for (code, description) in others(operation) {
        responses[*code] = json!({"description": description, "schema": schema});
    }
    let body = body(&operation.sends).into_iter();
    let in_query = operation.parameters.iter().map(|name| reference(name));
    let parameters: Vec<Value> = body.chain(in_query).collect();
    let mut document = json!({
        "description": operation.description, "operationId": operation.id,
        "tags": [operation.tag], "schemes": ["https"], "consumes": media::consumed(operation),
        "produces": media::produced(operation), "responses": responses,
    });
    if !parameters.is_empty() {
        document["parameters"] = parameters.into();
    }
    if let Some((action, kind)) = &operation.about {
        document["x-kubernetes-action"] = (*action).into();
        document["x-kubernetes-group-version-kind"] = kind.clone();
    }
    document
}

/// Describes the body of a request as a parameter.
fn body(sends: &Sends) -> Option<Value> {
    let (name, required) = sends.schema()?;
    let mut body = json!({"name": BODY, "in": BODY, "schema": schema(&name)});
    if required {
        body["required"] = true.into();
    }
    Some(body)
}

fn schema(name: &str) -> Value {
    json!({"$ref": format!("#/definitions/{name}")})
}

fn reference(parameter: &str) -> Value {
    json!({"$ref": format!("#/parameters/{parameter}")})
}
