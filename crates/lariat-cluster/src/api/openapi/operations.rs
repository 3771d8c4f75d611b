//! The paths of a resource, and what can be done at each.

use lariat_apimachinery::kinds::Resource;
use serde_json::{Map, Value, json};

use super::names::{kind_json, schema_name};

/// Adds the paths of a resource.
pub(super) fn describe(resource: &Resource, paths: &mut Map<String, Value>) {
    let version = match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let plural = &resource.plural;
    let collection = if resource.namespaced {
        format!("{version}/namespaces/{{namespace}}/{plural}")
    } else {
        format!("{version}/{plural}")
    };
    let item = format!("{collection}/{{name}}");
    if resource.rules.review {
        paths.insert(collection.clone(), path(resource, &collection, &["post"]));
        return;
    }
    let collected: &[&str] = &["get", "post", "delete"];
    let single: &[&str] = &["get", "put", "patch", "delete"];
    paths.insert(collection.clone(), path(resource, &collection, collected));
    if resource.namespaced {
        let everywhere = format!("{version}/{plural}");
        paths.insert(everywhere.clone(), path(resource, &everywhere, &["get"]));
    }
    paths.insert(item.clone(), path(resource, &item, single));
    if resource.rules.status {
        let status = format!("{item}/status");
        let part: &[&str] = &["get", "put", "patch"];
        paths.insert(status.clone(), path(resource, &status, part));
    }
}

/// Describes what some methods do at a path.
fn path(resource: &Resource, path: &str, methods: &[&str]) -> Value {
    let named = path.contains("{name}");
    let mut document: Map<String, Value> = methods
        .iter()
        .map(|method| ((*method).to_owned(), operation(resource, method, named)))
        .collect();
    let parameters: Vec<Value> = ["name", "namespace"]
        .into_iter()
        .filter(|name| path.contains(&format!("{{{name}}}")))
        .map(|name| {
            json!({
                "name": name, "in": "path", "required": true,
                "schema": {"type": "string", "uniqueItems": true},
            })
        })
        .collect();
    if !parameters.is_empty() {
        document.insert("parameters".into(), parameters.into());
    }
    document.into()
}

fn operation(resource: &Resource, method: &str, named: bool) -> Value {
    let action = match (method, named) {
        ("get", false) => "list",
        ("delete", false) => "deletecollection",
        _ => method,
    };
    let kind = match action {
        "list" | "deletecollection" => &resource.list_kind,
        _ => &resource.kind,
    };
    let mut operation = json!({
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind_json(resource),
        "responses": {"200": {"description": "OK"}, "401": {"description": "Unauthorized"}},
    });
    let schema = json!({
        "$ref": format!("#/components/schemas/{}", schema_name(resource, kind)),
    });
    operation["responses"]["200"]["content"] = json!({"application/json": {"schema": schema}});
    match method {
        "post" | "put" => {
            operation["requestBody"] = json!({"content": {"application/json": {"schema": schema}}});
        }
        "patch" => operation["requestBody"] = json!({"content": patches(resource)}),
        _ => {}
    }
    if matches!(method, "post" | "put" | "patch") {
        operation["parameters"] = write_parameters(method).into();
    }
    operation
}

/// Describes the patches that objects take.
fn patches(resource: &Resource) -> Value {
    let schema = json!({"schema": {"type": "object"}});
    let mut patches = json!({
        "application/apply-patch+yaml": schema, "application/json-patch+json": schema,
        "application/merge-patch+json": schema,
    });
    if !resource.rules.custom {
        patches["application/strategic-merge-patch+json"] = schema;
    }
    patches
}

fn write_parameters(method: &str) -> Vec<Value> {
    let mut names = vec!["dryRun", "fieldManager", "fieldValidation"];
    if method == "patch" {
        names.push("force");
    }
    names
        .into_iter()
        .map(|name| {
            let kind = if name == "force" { "boolean" } else { "string" };
            json!({
                "name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true},
            })
        })
        .collect()
}
