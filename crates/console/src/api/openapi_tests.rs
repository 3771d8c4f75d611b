//! Checks that `openapi.json` describes the types of the API. `UPDATE_OPENAPI=1` writes the file.

use lariat_http::TOKEN_HEADER;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{Action, ControllerDetail, Done, Health, KeyDetail, KindNames, Overview, Plan};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/openapi.json");

#[test]
fn the_document_describes_the_types() {
    let expected = format!("{:#}\n", document());
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(FILE, &expected).unwrap();
    }
    let written = std::fs::read_to_string(FILE).unwrap();
    assert!(
        written == expected,
        "openapi.json differs from the types: run this test with UPDATE_OPENAPI=1, and review the changes"
    );
}

fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.into_generator();
    let paths = paths(&mut schemas);
    let mut schemas: Map<String, Value> = schemas.take_definitions(true);
    schemas.insert("Status".to_owned(), status());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Console of a Lariat program",
            "version": "v1",
            "description": "The state of a program's controllers: calls, queued and failing keys, and the causes of \
            runs. Durations are seconds, times are RFC 3339 in UTC. No response contains the content of objects.",
        },
        "security": [{}, {"bearer": []}, {"header": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {
                    "type": "apiKey", "in": "header", "name": TOKEN_HEADER,
                    "description": "The token, for use behind a proxy that consumes `Authorization`, such as the API server's.",
                },
            },
        },
    })
}

fn paths(schemas: &mut SchemaGenerator) -> Value {
    let kind = path_parameter(
        "kind",
        "GROUP~VERSION~KIND, with core for the core group, such as apps~v1~Deployment",
    );
    let key = path_parameter(
        "key",
        "NAMESPACE~NAME, or ~NAME for a cluster-scoped object",
    );
    let context = query_parameter(
        "context",
        "The context id of a factory; without it, the first factory that has the kind is used",
        "string",
    );
    let watch = query_parameter(
        "watch",
        "Whether to send the overview every second, as server-sent events",
        "boolean",
    );
    let mut overview = get::<Overview>(schemas, "The state of the program", &json!([watch]));
    let content = &mut overview["get"]["responses"]["200"]["content"];
    content["text/event-stream"] = json!({"schema": {"type": "string"}});
    let controller = get::<ControllerDetail>(
        schemas,
        "A controller with its keys",
        &json!([kind, context]),
    );
    let of_key = get::<KeyDetail>(
        schemas,
        "The state and the last runs of a key",
        &json!([kind, key, context]),
    );
    let names = get::<Vec<KindNames>>(
        schemas,
        "The names of the kinds that have a controller, as discovery has them",
        &json!([]),
    );
    let plan = get::<Plan>(
        schemas,
        "The writes that operators in plan mode would send",
        &json!([]),
    );
    let health = get::<Health>(schemas, "The health of the program", &json!([]));
    let (action, done) = (
        schemas.subschema_for::<Action>(),
        schemas.subschema_for::<Done>(),
    );
    json!({
        "/api/v1/overview": overview,
        "/api/v1/controllers/{kind}": controller,
        "/api/v1/controllers/{kind}/keys/{key}": of_key,
        "/api/v1/names": names,
        "/api/v1/plan": plan,
        "/api/v1/health": health,
        "/api/v1/actions": {"post": {
            "summary": "Performs an action; refused unless actions are enabled and the user is authorised",
            "requestBody": {"required": true, "content": {"application/json": {"schema": action}}},
            "responses": responses(&json!(done)),
        }},
    })
}

fn get<T: JsonSchema>(schemas: &mut SchemaGenerator, summary: &str, parameters: &Value) -> Value {
    let schema = json!(schemas.subschema_for::<T>());
    json!({"get": {
        "summary": summary, "parameters": parameters, "responses": responses(&schema),
    }})
}

fn responses(schema: &Value) -> Value {
    let error = json!({"schema": {"$ref": "#/components/schemas/Status"}});
    json!({
        "200": {"description": "OK", "content": {"application/json": {"schema": schema}}},
        "default": {"description": "A refusal", "content": {"application/json": error}},
    })
}

fn path_parameter(name: &str, description: &str) -> Value {
    json!({
        "name": name, "in": "path", "required": true, "description": description, "schema": {"type": "string"},
    })
}

fn query_parameter(name: &str, description: &str, of: &str) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": {"type": of}})
}

/// Returns the schema of an error, which is a `Status` as from the API server.
fn status() -> Value {
    json!({
        "type": "object",
        "description": "The refusal of a request.",
        "properties": {
            "kind": {"const": "Status"}, "apiVersion": {"const": "v1"}, "status": {"const": "Failure"},
            "message": {"type": "string"}, "reason": {"type": "string"}, "code": {"type": "integer"},
        },
    })
}
