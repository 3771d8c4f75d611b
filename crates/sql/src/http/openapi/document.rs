//! The OpenAPI document of the service.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value as Json, json};

use super::schemas::schemas;
use crate::cache::SqlKind;
use crate::http::target::Pages;
use crate::schema::Schema;

/// The parameters of a list: name, type, whether it may be repeated, and meaning.
const PARAMETERS: [(&str, &str, bool, &str); 17] = [
    (
        "filter",
        "string",
        true,
        "Conditions, separated by commas, of which one has to hold; all filters have to hold. A condition is `field=value`, or has \
         `!=`, `~`, `!~`, `<`, `<=`, `>`, `>=`, `in (a,b)`, `notin (a,b)`, `contains` or `notcontains`; `field` alone asks that it \
         exists and `!field` that it does not. Values with other signs are quoted. A label is `metadata.labels[app]`.",
    ),
    (
        "sort",
        "string",
        true,
        "Names of fields or labels, separated by commas; a leading minus sorts in descending order.",
    ),
    (
        "search",
        "string",
        false,
        "Words that must all occur in the searchable fields; the last one may be a prefix.",
    ),
    (
        "namespaces",
        "string",
        false,
        "Names of namespaces, separated by commas; `()` is the empty list.",
    ),
    (
        "namespaces!",
        "string",
        false,
        "Names of namespaces to exclude.",
    ),
    (
        "projectsornamespaces",
        "string",
        false,
        "Names of namespaces, or values of the label that names their project. Not for watches.",
    ),
    (
        "projectsornamespaces!",
        "string",
        false,
        "Projects or namespaces to exclude. Not for watches.",
    ),
    (
        "projectlabel",
        "string",
        false,
        "The label of a namespace that names its project.",
    ),
    (
        "page",
        "integer",
        false,
        "The number of a page, from 1; has no effect without `pagesize`.",
    ),
    (
        "pagesize",
        "integer",
        false,
        "The size of a page. The response has the total.",
    ),
    (
        "limit",
        "integer",
        false,
        "How many objects are returned at most.",
    ),
    (
        "continue",
        "string",
        false,
        "The `continue` of the previous response; the objects after it are returned.",
    ),
    (
        "summary",
        "string",
        false,
        "Names of fields or labels to count the objects by, separated by commas.",
    ),
    ("summaryonly", "boolean", false, "Returns no objects."),
    (
        "summarynamespaced",
        "boolean",
        false,
        "Counts by namespace as well.",
    ),
    (
        "revision",
        "string",
        false,
        "A revision: a list waits until the cache has reached it, and a watch starts after it.",
    ),
    (
        "watch",
        "boolean",
        false,
        "Sends changes as server-sent events.",
    ),
];

/// Writes the document.
pub(crate) fn document(kinds: &BTreeMap<String, SqlKind>, pages: Pages, is_open: bool) -> Bytes {
    let mut paths = Map::new();
    paths.insert(
        "/v1/kinds".into(),
        json!({"get": operation("listKinds", "Returns the kinds, their fields and their state.", &["Kinds"], &[])}),
    );
    for (path, kind) in kinds {
        of_kind(&mut paths, path, kind.schema());
    }
    let security = if is_open {
        json!([])
    } else {
        json!([{"bearer": []}])
    };
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "SQL cache", "version": "v1",
            "description": format!(
                "Reads the state of a cluster. A list returns {} objects by default, and at most {}.",
                pages.default, pages.largest
            ),
        },
        // Relative, so that it is right below any path at which the service is nested.
        "servers": [{"url": "."}],
        "security": security,
        "paths": paths,
        "components": {
            "parameters": parameters(),
            "schemas": schemas(),
            "responses": {"Error": content("Why it is not answered.", "application/json", "Status")},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    });
    Bytes::from(document.to_string())
}

/// Adds the paths of a kind.
fn of_kind(paths: &mut Map<String, Json>, path: &str, schema: &Schema) {
    let gvk = schema.gvk();
    let fields: Vec<String> = schema.fields().iter().map(field).collect();
    let summary = format!("Lists or watches {gvk}.");
    let all: Vec<&str> = PARAMETERS.iter().map(|(name, ..)| *name).collect();
    // Generators of clients make names of functions from the ids.
    let id = path.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let mut list = operation(&format!("list_{id}"), &summary, &["List", "Event"], &all);
    list["description"] = format!("Fields: {}.", fields.join(", ")).into();
    if let Some(parameters) = list["parameters"].as_array_mut() {
        parameters.push(json!({
            "name": "Last-Event-ID", "in": "header", "schema": {"type": "string"},
            "description": "The id of the last event of a watch, which resumes after it.",
        }));
    }
    paths.insert(format!("/v1/{path}"), json!({"get": list}));
    let summary = format!("Returns one {gvk}.");
    for (id, below, names) in [
        (format!("get_{id}"), "{name}", &["name"][..]),
        (
            format!("get_namespaced_{id}"),
            "{namespace}/{name}",
            &["namespace", "name"],
        ),
    ] {
        let mut get = operation(&id, &summary, &["Object"], &["revision"]);
        if let Some(parameters) = get["parameters"].as_array_mut() {
            parameters.extend(names.iter().map(|name| {
                json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
            }));
        }
        paths.insert(format!("/v1/{path}/{below}"), json!({"get": get}));
    }
}

fn field(field: &crate::field::Field) -> String {
    let of = format!("{:?}", field.field_type()).to_lowercase();
    let many = if field.is_many() { ", many values" } else { "" };
    let searchable = if field.is_searchable() {
        ", searchable"
    } else {
        ""
    };
    format!("`{}` ({of}{many}{searchable})", field.name())
}

fn operation(id: &str, summary: &str, answers: &[&str], parameters: &[&str]) -> Json {
    let parameters: Vec<Json> = parameters
        .iter()
        .map(|name| json!({"$ref": format!("#/components/parameters/{}", component(name))}))
        .collect();
    let mut contents = Map::new();
    for of in answers {
        let media = match *of {
            "Event" => "text/event-stream",
            _ => "application/json",
        };
        let schema = json!({"schema": {"$ref": format!("#/components/schemas/{of}")}});
        contents.insert(media.into(), schema);
    }
    json!({
        "operationId": id, "summary": summary, "parameters": parameters,
        "responses": {
            "200": {"description": "The requested data.", "content": contents},
            "304": {"description": "The client's copy is still current."},
            "default": {"$ref": "#/components/responses/Error"},
        },
    })
}

fn parameters() -> Json {
    let parameters = PARAMETERS.iter().map(|(name, of, is_many, meaning)| {
        let schema = if *is_many {
            json!({"type": "array", "items": {"type": of}})
        } else if *of == "integer" {
            json!({"type": of, "minimum": 1})
        } else {
            json!({"type": of})
        };
        let parameter = json!({
            "name": name, "in": "query", "description": meaning, "schema": schema,
        });
        (component(name), parameter)
    });
    Json::Object(parameters.collect())
}

/// Returns the key of a parameter in the components.
///
/// Keys cannot contain an exclamation mark.
fn component(name: &str) -> String {
    name.replace('!', ".not")
}

fn content(description: &str, media: &str, schema: &str) -> Json {
    let schema = json!({"$ref": format!("#/components/schemas/{schema}")});
    json!({"description": description, "content": {media: {"schema": schema}}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_of_the_url_form_is_described() {
        let unknown = crate::query::Query::from_url("x=y")
            .unwrap_err()
            .to_string();
        let (_, known) = unknown.split_once("known are ").unwrap();
        let described = PARAMETERS.map(|(name, ..)| name).join(", ");
        assert_eq!(described, format!("{known}, watch"));
    }
}
