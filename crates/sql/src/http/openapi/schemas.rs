//! The schemas of responses.

use serde_json::{Value as Json, json};

/// Returns all schemas, by their names.
pub(super) fn schemas() -> Json {
    json!({
        "Object": {"type": "object", "description": "A Kubernetes object."},
        "Kinds": kinds(),
        "List": list(),
        "Event": {
            "type": "object", "required": ["type", "object"],
            "description": "The data of each event; its id is a revision.",
            "properties": {
                "type": {"enum": ["ADDED", "MODIFIED", "DELETED", "ERROR"]},
                "object": {"$ref": "#/components/schemas/Object"},
            },
        },
        "Status": status(),
    })
}

fn text() -> Json {
    json!({"type": "string"})
}

fn number() -> Json {
    json!({"type": "integer"})
}

fn array(of: &Json) -> Json {
    json!({"type": "array", "items": of})
}

fn kinds() -> Json {
    let field = json!({
        "type": "object",
        "properties": {
            "name": text(), "type": text(), "isMany": {"type": "boolean"}, "isSearchable": {"type": "boolean"},
            "steps": {
                "type": ["array", "null"],
                "description": "Where it is in an object, unless it is computed: a text is a member, a number an element, null \
                    stands for all elements, and an object for the first element that fits it.",
            },
        },
    });
    let kind = json!({
        "type": "object",
        "properties": {
            "group": text(), "version": text(), "kind": text(), "path": text(), "revision": text(),
            "state": {"enum": ["ready", "filling", "failing"]},
            "unwritten": number(), "lagMilliseconds": number(),
            "unindexable": {"type": "object", "additionalProperties": number()},
            "withoutContent": number(), "leftOut": number(), "skippedColumns": number(), "fields": array(&field),
            "oldDataKeys": number(), "oldRows": number(),
            "associations": array(&json!({
                "type": "object", "properties": {"name": text(), "kind": text()},
            })),
        },
    });
    json!({
        "type": "object", "required": ["kinds", "isOpen"],
        "properties": {
            "isOpen": {"type": "boolean", "description": "Whether no token is needed."},
            "kinds": array(&kind),
        },
    })
}

fn list() -> Json {
    let count = json!({
        "type": "object", "properties": {"value": text(), "namespace": text(), "objects": number()},
    });
    let summary = json!({
        "type": "object", "properties": {"by": text(), "counts": array(&count)},
    });
    json!({
        "type": "object",
        "required": ["kind", "apiVersion", "revision", "total", "continue", "summaries", "objects"],
        "properties": {
            "kind": text(), "apiVersion": text(),
            "revision": {"type": "string", "description": "The revision from which a watch resumes after this list."},
            "total": {
                "type": ["integer", "null"],
                "description": "The number of objects that meet the conditions, if known.",
            },
            "continue": {
                "type": ["string", "null"],
                "description": "The cursor of the next objects, if there are more.",
            },
            "summaries": array(&summary),
            "objects": array(&json!({"$ref": "#/components/schemas/Object"})),
        },
    })
}

fn status() -> Json {
    let cause = json!({
        "type": "object", "properties": {"reason": text(), "field": text(), "message": text()},
    });
    json!({
        "type": "object", "required": ["kind", "apiVersion", "status", "message", "reason", "code"],
        "properties": {
            "kind": {"const": "Status"}, "apiVersion": {"const": "v1"}, "metadata": {"type": "object"},
            "status": {"const": "Failure"}, "message": text(), "reason": text(), "code": number(),
            "details": {
                "type": "object", "properties": {"retryAfterSeconds": number(), "causes": array(&cause)},
            },
        },
    })
}
