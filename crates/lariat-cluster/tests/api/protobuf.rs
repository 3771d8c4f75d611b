//! Requests in protobuf, as typed clients send them.

use http::Method;
use serde_json::json;

use crate::bench::{Answer, Bench, text};
use crate::kinds::{WIDGETS, definition, widget};

const MEDIA: &str = "application/vnd.kubernetes.protobuf";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Writes a field that is a text or a message.
fn field(number: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("the messages here are short");
    assert!(length < 0x80, "longer ones have lengths of two bytes");
    [&[number << 3 | 2, length], payload].concat()
}

fn body(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())];
    let unknown = [field(1, &type_meta.concat()), field(2, message)];
    [b"k8s\0", &unknown.concat()[..]].concat()
}

/// Options that delete only an object of a UID that no object has.
fn options(api_version: &str) -> Vec<u8> {
    body(api_version, "DeleteOptions", &field(2, &field(1, b"other")))
}

async fn send(bench: &Bench, method: Method, path: &str, body: Vec<u8>) -> Answer {
    let accept = format!("{MEDIA},application/json");
    let headers = [("content-type", MEDIA), ("accept", &accept)];
    bench.ask(method, path, &headers, body).await
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_and_answered_in_json() {
    let bench = Bench::new().await;
    let data = field(2, &[field(1, b"key"), field(2, b"value")].concat());
    let message = [field(1, &field(1, b"a")), data].concat();
    let config_map = body("v1", "ConfigMap", &message);
    let answer = send(&bench, Method::POST, CONFIG_MAPS, config_map).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.json()["data"], json!({"key": "value"}));
    assert_eq!(text(&answer.json(), "/metadata/namespace"), "default");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_object_of_the_kind_is_refused() {
    let bench = Bench::new().await;
    let answer = send(&bench, Method::POST, CONFIG_MAPS, b"{}".to_vec()).await;
    let refused = answer.fails(400, "BadRequest");
    assert!(text(&refused, "/message").contains("must be of type ConfigMap"));
    let secret = body("v1", "Secret", &field(1, &field(1, b"a")));
    let answer = send(&bench, Method::POST, CONFIG_MAPS, secret).await;
    let refused = answer.fails(400, "BadRequest");
    assert!(text(&refused, "/message").contains("cannot be handled as a ConfigMap"));
    let cut = body("v1", "ConfigMap", &[0x0a, 9]);
    let answer = send(&bench, Method::POST, CONFIG_MAPS, cut).await;
    let refused = answer.fails(400, "BadRequest");
    assert!(text(&refused, "/message").ends_with("unexpected EOF"));
}

#[tokio::test(start_paused = true)]
async fn options_of_deletions_are_read() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let answer = send(&bench, Method::DELETE, &path, options("v1")).await;
    answer.fails(409, "Conflict");
    let yaml = "preconditions: {uid: other}";
    let answer = bench.call(Method::DELETE, &path, "application/yaml", yaml);
    answer.await.fails(409, "Conflict");
    let none = body("v1", "DeleteOptions", &[]);
    let answer = send(&bench, Method::DELETE, &path, none).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_not_sent_in_it_but_options_are() {
    let bench = Bench::new().await;
    let widgets = definition("widgets", "Widget", "Namespaced");
    bench.define(&widgets).await;
    bench.post(WIDGETS, &widget("a")).await;
    let object = body("demo.dev/v1", "Widget", &field(1, &field(1, b"b")));
    let answer = send(&bench, Method::POST, WIDGETS, object).await;
    answer.fails(415, "UnsupportedMediaType");
    let path = format!("{WIDGETS}/a");
    let answer = send(&bench, Method::DELETE, &path, options("demo.dev/v1")).await;
    answer.fails(409, "Conflict");
}
