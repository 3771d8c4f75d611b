use lariat_apimachinery::kinds::{Kinds, TableId};
use serde_json::{Value, json};

use super::schemas::definition;
use super::{document, protobuf};

/// A field of a message: its number, and its payload if that is not a number.
type Field<'a> = (u64, &'a [u8]);

/// Reads a message.
fn read(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let length = match key & 7 {
            0 => {
                varint(&mut bytes);
                0
            }
            1 => 8,
            2 => varint(&mut bytes) as usize,
            other => panic!("wire type {other}"),
        };
        let (payload, rest) = bytes.split_at(length);
        fields.push((key >> 3, payload));
        bytes = rest;
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

/// Returns the values at a path of field numbers; the messages on the way have a name, or are the only ones.
fn at<'a>(message: &'a [u8], path: &[(u64, &str)]) -> Vec<&'a [u8]> {
    let Some(((number, name), rest)) = path.split_first() else {
        return vec![message];
    };
    let found = read(message).into_iter().filter(|(each, payload)| {
        each == number && (name.is_empty() || read(payload).contains(&(1, name.as_bytes())))
    });
    found.flat_map(|(_, payload)| at(payload, rest)).collect()
}

fn check_text(message: &[u8], path: &[(u64, &str)], expected: &[&str]) {
    let found = at(message, path);
    let texts: Vec<&str> = found
        .iter()
        .map(|text| std::str::from_utf8(text).expect("it is a text"))
        .collect();
    assert_eq!(texts, expected, "{path:?}");
}

#[test]
fn the_message_has_what_clients_look_for() {
    let catalog = Kinds::new(|_| TableId(0)).catalog();
    let document = document::write(&catalog);
    let message = protobuf::encode(&document);
    check_text(&message, &[(1, "")], &["2.0"]);
    let names = document["definitions"].as_object().expect("it has some");
    let names: Vec<&str> = names.keys().map(String::as_str).collect();
    check_text(&message, &[(9, ""), (1, ""), (1, "")], &names);
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    let patch = [(8, ""), (2, path), (2, ""), (8, "")];
    let parameter = |name: &str| format!("#/parameters/{name}");
    let parameters = ["dryRun", "fieldManager", "fieldValidation", "force"].map(parameter);
    let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
    let references = [&patch[..], &[(8, ""), (2, ""), (1, "")]].concat();
    check_text(&message, &references, &parameters);
    let extension = (13, "x-kubernetes-group-version-kind");
    let kind = [&patch[..], &[extension, (2, ""), (2, "")]].concat();
    check_text(
        &message,
        &kind,
        &[r#"{"group":"apps","kind":"Deployment","version":"v1"}"#],
    );
    let in_query = [(2, ""), (2, ""), (3, ""), (4, "")];
    let named = [&[(10, ""), (1, "fieldValidation")], &in_query[..]].concat();
    check_text(&message, &named, &["fieldValidation"]);
    let ports = [
        (9, ""),
        (1, "io.k8s.api.core.v1.Container"),
        (2, ""),
        (25, ""),
        (1, "ports"),
        (2, ""),
    ];
    let of_ports = |path: &[(u64, &'static str)]| [&ports[..], path].concat();
    check_text(&message, &of_ports(&[(22, ""), (1, "")]), &["array"]);
    let port = "#/definitions/io.k8s.api.core.v1.ContainerPort";
    check_text(&message, &of_ports(&[(23, ""), (1, ""), (1, "")]), &[port]);
    let key = (31, "x-kubernetes-patch-merge-key");
    let key = of_ports(&[key, (2, ""), (2, "")]);
    check_text(&message, &key, &[r#""containerPort""#]);
}

#[test]
fn every_reference_is_to_a_definition_or_a_parameter() {
    let catalog = Kinds::new(|_| TableId(0)).catalog();
    let document = document::write(&catalog);
    let text = document.to_string();
    for rest in text.split(r##""$ref":"#/"##).skip(1) {
        let pointer = rest.split('"').next().unwrap_or_default();
        let (place, name) = pointer.split_once('/').unwrap_or_default();
        assert!(document[place][name].is_object(), "{pointer}");
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "values of a test are written in place"
)]
fn check_schema(schema: Value, expected: Value) {
    assert_eq!(definition("dev.demo.v1.Widget", schema), expected);
}

#[test]
fn schemas_lose_what_v2_does_not_have() {
    let reference = |place: &str| json!({"$ref": format!("#/{place}/io.k8s.Some")});
    let text = json!({"type": "string", "default": "a", "enum": ["a"]});
    check_schema(
        json!({"type": "object", "required": ["free", "name"], "properties": {
            "name": text, "free": {"type": "string", "nullable": true},
            "some": {"allOf": [reference("components/schemas")], "description": "Some."},
            "any": {"anyOf": [{"type": "string"}], "x-kubernetes-int-or-string": true},
            "list": {"type": "array", "items": {"type": "integer", "default": 1}},
        }}),
        json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "enum": ["a"]}, "free": {},
            "some": {"$ref": "#/definitions/io.k8s.Some", "description": "Some."},
            "any": {"x-kubernetes-int-or-string": true},
            "list": {"type": "array", "items": {"type": "integer"}},
        }}),
    );
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"name": text}});
    let kinds = json!([{"kind": "Widget"}]);
    let mut root = open.clone();
    root["x-kubernetes-group-version-kind"] = kinds.clone();
    check_schema(
        root,
        json!({"type": "object", "x-kubernetes-group-version-kind": kinds}),
    );
    check_schema(
        json!({"type": "object", "additionalProperties": open}),
        json!({"type": "object",
            "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true}}),
    );
}
