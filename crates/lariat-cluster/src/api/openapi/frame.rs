//! What every v3 document has around its paths and schemas.

use serde_json::{Map, Value, json};

/// Puts paths and schemas into a document.
pub(super) fn frame(info: &Value, paths: Map<String, Value>, schemas: Map<String, Value>) -> Value {
    let token = json!({
        "type": "apiKey", "description": "Bearer Token authentication",
        "name": "authorization", "in": "header",
    });
    let mut document = json!({
        "openapi": "3.0.0", "info": info,
        "components": {"securitySchemes": {"BearerToken": token}},
    });
    document["paths"] = paths.into();
    if !schemas.is_empty() {
        document["components"]["schemas"] = schemas.into();
    }
    document
}

pub(super) fn info() -> Value {
    json!({"title": "Kubernetes", "version": "1.36"})
}
