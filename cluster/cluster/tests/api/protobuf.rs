//! Requests and answers in protobuf, as typed clients send and want them.

use http::Method;
use lariat_apimachinery::protobuf::Envelope;
use serde_json::{Value, json};

use crate::bench::{Answer, Bench, CONFIG_MAPS, text};
use crate::kinds::{WIDGETS, definition, widget};

const MEDIA: &str = "application/vnd.kubernetes.protobuf";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

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
    let headers = [("content-type", MEDIA), ("accept", "application/json")];
    bench.ask(method, path, &headers, body).await
}

/// Reads an answer, which is what JSON is of the same.
fn read(answer: &Answer) -> Value {
    assert_eq!(answer.headers["content-type"], MEDIA, "{}", answer.text);
    read_body(&answer.bytes)
}

fn read_body(body: &[u8]) -> Value {
    let envelope = Envelope::open(body).expect("the answer has an envelope");
    let object = envelope.object();
    Value::Object(object.expect("the answer is of a known type"))
}

#[tokio::test(start_paused = true)]
async fn answers_are_in_protobuf_where_it_is_preferred() {
    let bench = Bench::new().await;
    let data = field(2, &[field(1, b"key"), field(2, b"value")].concat());
    let message = [field(1, &field(1, b"a")), data].concat();
    let config_map = body("v1", "ConfigMap", &message);
    let headers = [("content-type", MEDIA), ("accept", MEDIA)];
    let answer = bench
        .ask(Method::POST, CONFIG_MAPS, &headers, config_map)
        .await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    assert_eq!(read(&answer)["data"], json!({"key": "value"}));
    let one = format!("{CONFIG_MAPS}/a");
    let scale = "/apis/apps/v1/namespaces/default/deployments/d/scale";
    let pods = "/api/v1/namespaces/default/pods";
    let spec =
        json!({"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]});
    bench
        .post(pods, &json!({"metadata": {"name": "p"}, "spec": spec}))
        .await;
    let labels = json!({"a": "b"});
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    let spec = json!({"selector": {"matchLabels": labels}, "template": template});
    let deployment = json!({"metadata": {"name": "d"}, "spec": spec});
    bench.post(DEPLOYMENTS, &deployment).await;
    let only = |kind: &str| format!("{MEDIA};as={kind};g=meta.k8s.io;v=v1");
    let (metadata, list) = (
        only("PartialObjectMetadata"),
        only("PartialObjectMetadataList"),
    );
    for (path, accept) in [
        (&*one, MEDIA),
        (&one, &format!("{MEDIA},application/json")),
        (&one, &format!("{MEDIA}, */*")),
        (&one, &metadata),
        (CONFIG_MAPS, MEDIA),
        (CONFIG_MAPS, &list),
        (pods, MEDIA),
        (DEPLOYMENTS, MEDIA),
        (scale, MEDIA),
        ("/api/v1/nodes", MEDIA),
        ("/api/v1", MEDIA),
        ("/api/v1/pods/none", MEDIA),
        (&format!("{CONFIG_MAPS}/none"), MEDIA),
    ] {
        let answer = bench
            .ask(Method::GET, path, &[("accept", accept)], "")
            .await;
        let json = accept.replace(MEDIA, "application/json");
        let same = bench.ask(Method::GET, path, &[("accept", &json)], "").await;
        assert_eq!(answer.code, same.code, "{path}");
        if same.headers["content-type"] == "application/json" {
            let (mut got, mut expected) = (read(&answer), same.json());
            without_zeros(&mut got);
            without_zeros(&mut expected);
            if accept == list {
                // The items of such a list have no types in protobuf.
                for item in expected["items"].as_array_mut().into_iter().flatten() {
                    item.as_object_mut()
                        .unwrap()
                        .retain(|name, _| name == "metadata");
                }
            }
            assert_eq!(got, expected, "{path} {accept}");
        }
    }
}

/// Drops what Go writes in JSON although it is zero, and what reads as zero.
fn without_zeros(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null() && *value != json!([]) && *value != "");
            object.values_mut().for_each(without_zeros);
        }
        Value::Array(items) => items.iter_mut().for_each(without_zeros),
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_behind_their_lengths() {
    let bench = Bench::new().await;
    let created = bench.config_map("a", json!({"a": "b"})).await;
    let path = format!("{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true");
    let mut watch = bench.watch_with(&path, &[("accept", MEDIA)]).await;
    let mut event = async || {
        let frame = watch.frame().await;
        let (length, message) = frame.split_at(4);
        let length = u32::from_be_bytes(length.try_into().unwrap());
        assert_eq!(usize::try_from(length).unwrap(), message.len());
        let at = message.windows(4).position(|bytes| bytes == b"k8s\0");
        let (event, object) = message.split_at(at.expect("the object has an envelope"));
        (
            String::from_utf8_lossy(event).into_owned(),
            read_body(object),
        )
    };
    let (kind, object) = event().await;
    assert!(kind.contains("ADDED"), "{kind}");
    assert_eq!(object, created);
    let (kind, object) = event().await;
    assert!(kind.contains("BOOKMARK"), "{kind}");
    let annotations = &object["metadata"]["annotations"];
    assert_eq!(annotations["k8s.io/initial-events-end"], "true");
    bench.delete(&format!("{CONFIG_MAPS}/a")).await;
    let (kind, object) = event().await;
    assert!(kind.contains("DELETED"), "{kind}");
    assert_eq!(object["data"], created["data"]);
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion=1");
    let old = Bench::with_history(1).await;
    for name in ["a", "b", "c", "d"] {
        old.config_map(name, json!({})).await;
    }
    let mut watch = old.watch_with(&path, &[("accept", MEDIA)]).await;
    let frame = watch.frame().await;
    let status = frame
        .windows(4)
        .position(|bytes| bytes == b"k8s\0")
        .unwrap();
    assert_eq!(read_body(&frame[status..])["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn what_there_is_not_in_protobuf_is_not_acceptable_or_comes_in_json() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let table = "as=Table;g=meta.k8s.io;v=v1";
    let both = format!("{MEDIA};{table},application/json;{table}");
    for (path, accept, code, available) in [
        (CONFIG_MAPS, &*format!("{MEDIA};{table}"), 406, "protobuf"),
        (WIDGETS, &format!("{MEDIA}, */*"), 200, "WidgetList"),
        (CONFIG_MAPS, &both, 200, "Table"),
    ] {
        let answer = bench
            .ask(Method::GET, path, &[("accept", accept)], "")
            .await;
        assert_eq!(answer.code, code, "{}", answer.text);
        let json = answer.json();
        let text = json["message"].as_str().or(json["kind"].as_str());
        assert!(text.unwrap().ends_with(available), "{json}");
    }
    // Errors are in it, also those about objects that are not.
    let missing = format!("{WIDGETS}/none");
    for (path, accept, code) in [
        (WIDGETS, MEDIA.to_owned(), 406),
        (&*missing, MEDIA.to_owned(), 406),
        (&missing, format!("{MEDIA},application/json"), 404),
        ("/api/v1/none", format!("{MEDIA},application/json"), 404),
        ("/version", MEDIA.to_owned(), 406),
    ] {
        let accept = [("accept", accept.as_str())];
        let answer = bench.ask(Method::GET, path, &accept, "").await;
        assert_eq!(answer.code, code, "{path}");
        assert_eq!(answer.headers["content-type"], MEDIA, "{path}");
        assert!(answer.bytes.starts_with(b"k8s\0"), "{path}");
    }
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
