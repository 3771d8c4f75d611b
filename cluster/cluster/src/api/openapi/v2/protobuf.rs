//! The document as a message `openapi.v2.Document`.
//!
//! Source of the numbers: `OpenAPIv2.proto` in `github.com/google/gnostic-models`. Only what the document has is there.

use serde_json::Value;

use super::wire::Message;

/// Writes a document in protobuf.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    Message::of(|message| {
        message.text(1, &document["swagger"]);
        message.nested(2, |info| {
            info.text(1, &document["info"]["title"]);
            info.text(2, &document["info"]["version"]);
        });
        message.nested(8, |paths| paths.named(2, &document["paths"], path_item));
        message.nested(9, |all| all.named(1, &document["definitions"], schema));
        message.nested(10, |all| all.named(1, &document["parameters"], parameter));
        for required in document["security"].as_array().into_iter().flatten() {
            message.nested(12, |all| {
                all.named(1, required, |scopes, value| scopes.texts(1, value));
            });
        }
        message.nested(13, |all| {
            all.named(1, &document["securityDefinitions"], |item, value| {
                item.nested(2, |key| {
                    for (number, name) in [(1, "type"), (2, "name"), (3, "in"), (4, "description")]
                    {
                        key.text(number, &value[name]);
                    }
                });
            });
        });
    })
}

fn path_item(message: &mut Message, item: &Value) {
    for (number, method) in [
        (2, "get"),
        (3, "put"),
        (4, "post"),
        (5, "delete"),
        (8, "patch"),
    ] {
        if let Some(found) = item.get(method) {
            message.nested(number, |message| operation(message, found));
        }
    }
    parameters(message, 9, &item["parameters"]);
}

fn operation(message: &mut Message, operation: &Value) {
    message.texts(1, &operation["tags"]);
    message.text(3, &operation["description"]);
    message.text(5, &operation["operationId"]);
    message.texts(6, &operation["produces"]);
    message.texts(7, &operation["consumes"]);
    parameters(message, 8, &operation["parameters"]);
    message.nested(9, |all| {
        all.named(1, &operation["responses"], |value, response| {
            value.nested(1, |message| {
                message.text(1, &response["description"]);
                if let Some(found) = response.get("schema") {
                    message.nested(2, |item| item.nested(1, |message| schema(message, found)));
                }
            });
        });
    });
    message.texts(10, &operation["schemes"]);
    extensions(message, 13, operation);
}

fn parameters(message: &mut Message, number: u32, list: &Value) {
    for each in list.as_array().into_iter().flatten() {
        message.nested(number, |item| {
            if each.get("$ref").is_some() {
                item.nested(2, |reference| reference.text(1, &each["$ref"]));
            } else {
                item.nested(1, |message| parameter(message, each));
            }
        });
    }
}

fn parameter(message: &mut Message, parameter: &Value) {
    if parameter["in"] == "body" {
        message.nested(1, |body| {
            body.text(2, &parameter["name"]);
            body.text(3, &parameter["in"]);
            body.flag(4, &parameter["required"]);
            body.nested(5, |message| schema(message, &parameter["schema"]));
        });
        return;
    }
    // A parameter in the query has one field more than one in the path.
    let (place, kind, unique) = if parameter["in"] == "query" {
        (3, 6, 20)
    } else {
        (4, 5, 19)
    };
    message.nested(2, |other| {
        other.nested(place, |message| {
            message.flag(1, &parameter["required"]);
            message.text(2, &parameter["in"]);
            message.text(4, &parameter["name"]);
            message.text(kind, &parameter["type"]);
            message.flag(unique, &parameter["uniqueItems"]);
        });
    });
}

const TEXTS: [(u32, &str); 5] = [
    (1, "$ref"),
    (2, "format"),
    (3, "title"),
    (4, "description"),
    (13, "pattern"),
];
const DOUBLES: [(u32, &str); 3] = [(6, "multipleOf"), (7, "maximum"), (9, "minimum")];
const FLAGS: [(u32, &str); 3] = [
    (8, "exclusiveMaximum"),
    (10, "exclusiveMinimum"),
    (16, "uniqueItems"),
];
const WHOLE: [(u32, &str); 6] = [
    (11, "maxLength"),
    (12, "minLength"),
    (14, "maxItems"),
    (15, "minItems"),
    (17, "maxProperties"),
    (18, "minProperties"),
];

fn schema(message: &mut Message, value: &Value) {
    for (number, name) in TEXTS {
        message.text(number, &value[name]);
    }
    for (number, name) in DOUBLES {
        message.double(number, &value[name]);
    }
    for (number, name) in FLAGS {
        message.flag(number, &value[name]);
    }
    for (number, name) in WHOLE {
        message.whole(number, &value[name]);
    }
    message.texts(19, &value["required"]);
    for each in value["enum"].as_array().into_iter().flatten() {
        message.any(20, each);
    }
    match &value["additionalProperties"] {
        Value::Null => {}
        Value::Bool(allowed) => message.nested(21, |item| item.flag(2, &(*allowed).into())),
        inner => message.nested(21, |item| item.nested(1, |message| schema(message, inner))),
    }
    if let Some(kind) = value.get("type") {
        message.nested(22, |item| item.texts(1, kind));
    }
    if let Some(inner) = value.get("items") {
        message.nested(23, |items| {
            items.nested(1, |message| schema(message, inner))
        });
    }
    if let Some(properties) = value.get("properties") {
        message.nested(25, |all| all.named(1, properties, schema));
    }
    if let Some(docs) = value.get("externalDocs") {
        message.nested(29, |message| {
            message.text(1, &docs["description"]);
            message.text(2, &docs["url"]);
        });
    }
    message.any(30, &value["example"]);
    extensions(message, 31, value);
}

/// Adds the members that begin with `x-`.
fn extensions(message: &mut Message, number: u32, value: &Value) {
    let members = value.as_object().into_iter().flatten();
    for (name, value) in members.filter(|(name, _)| name.starts_with("x-")) {
        message.nested(number, |named| {
            named.str(1, name);
            named.any(2, value);
        });
    }
}
