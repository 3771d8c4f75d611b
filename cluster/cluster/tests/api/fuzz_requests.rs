//! Requests for the fuzzer: every part of them may be sound, or not.

use fastrand::Rng;
use http::Method;
use serde_json::{Value, json};

use crate::fuzz_objects::{mutate, pick, random, sound, text};

/// One request, as it goes to the cluster.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// A resource as discovery lists it.
#[derive(Debug)]
pub(crate) struct Served {
    /// `/api/v1`, `/apis/apps/v1`
    pub(crate) version: String,
    /// With its subresource, if it is one.
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
}

const ACCEPTS: [&str; 12] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf, application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
    "application/json;as=;v=;g=",
    "text/html",
    "*/*;q=0.1",
    ";;,,=;q=x",
];

const CONTENT_TYPES: [&str; 9] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    ";",
];

const SELECTORS: [&str; 14] = [
    "app=a",
    "app!=a",
    "app in (a,b),!c",
    "app notin (",
    "a b c",
    "=",
    ",,",
    "metadata.name=a",
    "metadata.namespace!=default",
    "spec.nodeName=",
    "status.phase=Running,metadata.name!=b",
    "spec.nosuch=1",
    "a=\\",
    "app>5",
];

const SEGMENTS: [&str; 16] = [
    "a",
    "b",
    "..",
    ".",
    "%2F",
    "%00",
    "%ff",
    "%",
    "a%20b",
    "namespaces",
    "watch",
    "status",
    "scale",
    "A_B",
    "%25",
    "",
];

const PARAMETERS: [&str; 18] = [
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "watch",
    "allowWatchBookmarks",
    "sendInitialEvents",
    "timeoutSeconds",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "pretty",
    "propagationPolicy",
    "gracePeriodSeconds",
    "includeObject",
];

/// Makes a request.
pub(crate) fn ask(rng: &mut Rng, served: &[Served], tokens: &[String]) -> Ask {
    let methods = [
        "GET", "GET", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS",
    ];
    let resource = &served[rng.usize(..served.len())];
    let name = pick(rng, &["a", "b", "c"]);
    let method = pick(rng, &methods);
    let named = !matches!(method, "POST") && rng.u8(..4) != 0;
    let mut path = path(rng, resource, name, named);
    let parameters = rng.usize(..4);
    for index in 0..parameters {
        path.push(if index == 0 { '?' } else { '&' });
        path.push_str(&parameter(rng, tokens));
    }
    let mut headers = Vec::new();
    if rng.u8(..3) == 0 {
        headers.push(("accept", pick(rng, &ACCEPTS).to_owned()));
    }
    if rng.u8(..8) == 0 {
        headers.push(("accept-encoding", "gzip".to_owned()));
    }
    let (content_type, body) = match method {
        "PATCH" => patch(rng, resource, name),
        _ => object(rng, resource, name),
    };
    headers.push(("content-type", content_type.to_owned()));
    Ask {
        method: method.parse().expect("it is a method"),
        path,
        headers,
        body,
    }
}

fn path(rng: &mut Rng, resource: &Served, name: &str, named: bool) -> String {
    let (plural, subresource) = match resource.plural.split_once('/') {
        Some((plural, subresource)) => (plural, Some(subresource)),
        None => (resource.plural.as_str(), None),
    };
    let mut segments = vec![resource.version.trim_start_matches('/')];
    if rng.u8(..30) == 0 {
        segments.push("watch");
    }
    if resource.namespaced && rng.u8(..12) != 0 {
        let namespaces = ["default", "default", "default", "x", "gone", ""];
        segments.extend(["namespaces", pick(rng, &namespaces)]);
    }
    segments.push(plural);
    if named || subresource.is_some() {
        segments.push(name);
    }
    segments.extend(subresource);
    if rng.u8(..20) == 0 {
        let place = rng.usize(..=segments.len());
        segments.insert(place, pick(rng, &SEGMENTS));
    }
    if rng.u8(..30) == 0 {
        let place = rng.usize(..segments.len());
        segments[place] = pick(rng, &SEGMENTS);
    }
    format!("/{}", segments.join("/"))
}

fn parameter(rng: &mut Rng, tokens: &[String]) -> String {
    let name = pick(rng, &PARAMETERS);
    let value = match name {
        _ if rng.u8(..8) == 0 => text(rng),
        "labelSelector" | "fieldSelector" => pick(rng, &SELECTORS).to_owned(),
        "continue" if !tokens.is_empty() => tokens[rng.usize(..tokens.len())].clone(),
        "continue" => pick(rng, &["e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", "x"]).to_owned(),
        "resourceVersionMatch" => pick(rng, &["Exact", "NotOlderThan", "Other"]).to_owned(),
        "resourceVersion" | "limit" | "timeoutSeconds" | "gracePeriodSeconds" => {
            let numbers = [
                "0",
                "1",
                "2",
                "500",
                "1010",
                "-1",
                "18446744073709551616",
                "x",
            ];
            pick(rng, &numbers).to_owned()
        }
        "dryRun" => pick(rng, &["All", "None"]).to_owned(),
        "fieldManager" => pick(rng, &["m", "n"]).to_owned(),
        "fieldValidation" => pick(rng, &["Strict", "Warn", "Ignore"]).to_owned(),
        "propagationPolicy" => pick(rng, &["Foreground", "Background", "Orphan"]).to_owned(),
        "includeObject" => pick(rng, &["None", "Metadata", "Object"]).to_owned(),
        _ => pick(rng, &["true", "false", "1", ""]).to_owned(),
    };
    let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
    format!("{name}={value}")
}

/// Makes the object of a create or an update, or the options of a deletion.
fn object(rng: &mut Rng, resource: &Served, name: &str) -> (&'static str, Vec<u8>) {
    let mut object = whole(rng, resource, name);
    if rng.u8(..20) == 0 {
        object = json!({"propagationPolicy": text(rng), "gracePeriodSeconds": random(rng, 1),
            "preconditions": {"uid": random(rng, 1)}});
    }
    if rng.bool() {
        mutate(rng, &mut object);
    }
    let content_type = match rng.u8(..12) {
        0 => pick(rng, &CONTENT_TYPES),
        1 => "application/yaml",
        _ => "application/json",
    };
    (content_type, bytes(rng, &object))
}

/// Makes an object with its type, that of the subresource if there is one.
fn whole(rng: &mut Rng, resource: &Served, name: &str) -> Value {
    let (plural, subresource) = resource
        .plural
        .split_once('/')
        .unwrap_or((&resource.plural, ""));
    let mut object = match subresource {
        "scale" => json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": name}, "spec": {"replicas": rng.u8(..3)}}),
        "eviction" => {
            json!({"metadata": {"name": name}, "deleteOptions": {"gracePeriodSeconds": 0}})
        }
        "binding" => sound(rng, "bindings", name),
        _ => sound(rng, plural, name),
    };
    if subresource == "status" {
        object["status"] = json!({"replicas": 1, "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}]});
    }
    object
}

fn bytes(rng: &mut Rng, value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    if rng.u8(..20) == 0 {
        let place = rng.usize(..bytes.len());
        bytes[place] = rng.u8(..);
    }
    if rng.u8(..40) == 0 {
        bytes.truncate(rng.usize(..bytes.len()));
    }
    bytes
}

/// Makes a patch of one of the four kinds.
fn patch(rng: &mut Rng, resource: &Served, name: &str) -> (&'static str, Vec<u8>) {
    let mut object = whole(rng, resource, name);
    if rng.u8(..4) != 0 {
        mutate(rng, &mut object);
    }
    let content_type = pick(rng, &CONTENT_TYPES[3..7]);
    match content_type {
        "application/json-patch+json" => object = operations(rng, &object),
        "application/strategic-merge-patch+json" => direct(rng, &mut object, 40),
        "application/apply-patch+yaml" if object.is_object() => {
            let group_version = resource.version.trim_start_matches("/apis/");
            object["apiVersion"] = group_version.trim_start_matches("/api/").into();
            let kinds = [
                "ConfigMap",
                "Pod",
                "Deployment",
                "Service",
                "Widget",
                "Secret",
                "Job",
            ];
            let plural = resource.plural.trim_end_matches('s');
            let kind = kinds.into_iter().find(|kind| kind.to_lowercase() == plural);
            object["kind"] = kind.unwrap_or("Thing").into();
        }
        _ => {}
    }
    if rng.u8(..20) == 0 {
        object = random(rng, 3);
    }
    (content_type, bytes(rng, &object))
}

/// Makes a JSON patch, about places that an object has and others.
fn operations(rng: &mut Rng, object: &Value) -> Value {
    let mut places = vec![
        String::new(),
        "/".into(),
        "/nosuch/a".into(),
        "/~2".into(),
        "x".into(),
    ];
    collect(object, "", &mut places);
    let operations = (0..rng.usize(..6)).map(|_| {
        let operation = pick(
            rng,
            &["add", "remove", "replace", "move", "copy", "test", "x"],
        );
        let mut path = places[rng.usize(..places.len())].clone();
        match rng.u8(..6) {
            0 => path.push_str("/-"),
            1 => path.push_str("/0"),
            2 => path.push_str("/99999999999999999999"),
            _ => {}
        }
        let from = &places[rng.usize(..places.len())];
        json!({"op": operation, "path": path, "from": from, "value": random(rng, 2)})
    });
    operations.collect()
}

fn collect(value: &Value, path: &str, places: &mut Vec<String>) {
    if path.matches('/').count() > 8 {
        return;
    }
    places.push(path.to_owned());
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(value, &format!("{path}/{name}"), places);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                collect(value, &format!("{path}/{index}"), places);
            }
        }
        _ => {}
    }
}

/// Adds directives of strategic merge patches somewhere.
fn direct(rng: &mut Rng, value: &mut Value, levels: usize) {
    match value {
        // Deeper it would be the test that runs out of stack.
        _ if levels == 0 => {}
        Value::Object(members) => {
            for value in members.values_mut() {
                direct(rng, value, levels - 1);
            }
            let names: Vec<String> = members.keys().cloned().collect();
            if rng.u8(..6) != 0 || names.is_empty() {
                return;
            }
            let name = &names[rng.usize(..names.len())];
            let (name, value) = match rng.u8(..4) {
                0 => {
                    let words = ["replace", "delete", "merge", "x"];
                    ("$patch".to_owned(), json!(pick(rng, &words)))
                }
                1 => ("$retainKeys".to_owned(), json!(names)),
                2 => (
                    format!("$setElementOrder/{name}"),
                    json!([{"name": "c"}, random(rng, 1)]),
                ),
                _ => (format!("$deleteFromPrimitiveList/{name}"), random(rng, 2)),
            };
            members.insert(name, value);
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| direct(rng, item, levels - 1)),
        _ => {}
    }
}
