//! Bodies of requests: how large, and in what encoding.

use std::io;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::json;
use tower_service::Service;

use crate::bench::{Answer, Bench, CONFIG_MAPS};

const LIMIT: usize = 3 * 1024 * 1024;

/// Sends a ConfigMap of some size in chunks, without a content length.
async fn send_pieces(bench: &Bench, size: usize) -> StatusCode {
    let object = json!({"metadata": {"name": "a"}, "data": {"a": "b"}}).to_string();
    let padded = format!("{object}{}", " ".repeat(size - object.len()));
    let pieces: Vec<io::Result<Frame<Bytes>>> = padded
        .as_bytes()
        .chunks(64 * 1024)
        .map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece))))
        .collect();
    let body = StreamBody::new(futures::stream::iter(pieces));
    let request = Request::post(CONFIG_MAPS).header("content-type", "application/json");
    let request = request.body(body).expect("the request is well formed");
    let response = bench.cluster.service().call(request).await;
    let (parts, body) = response.expect("the connection holds").into_parts();
    let text = body.collect().await.expect("the body is whole").to_bytes();
    if parts.status == StatusCode::PAYLOAD_TOO_LARGE {
        let status: serde_json::Value = serde_json::from_slice(&text).expect("it is JSON");
        assert_eq!(status["reason"], "RequestEntityTooLarge");
        assert_eq!(
            status["message"],
            format!("Request entity too large: limit is {LIMIT}")
        );
    }
    parts.status
}

#[tokio::test(start_paused = true)]
async fn the_limit_holds_for_bodies_that_come_in_pieces() {
    let bench = Bench::new().await;
    let too_large = StatusCode::PAYLOAD_TOO_LARGE;
    assert_eq!(send_pieces(&bench, LIMIT + 1).await, too_large);
    assert_eq!(send_pieces(&bench, LIMIT).await, StatusCode::CREATED);
}

/// Sends a ConfigMap as it is written.
async fn send(bench: &Bench, body: &'static str) -> Answer {
    let media = "application/json";
    bench.call(Method::POST, CONFIG_MAPS, media, body).await
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_there_again_is_read_into_what_was_there() {
    let bench = Bench::new().await;
    let body = r#"{"metadata":{"name":"a"},"data":{"a":"1","b":"1"},"data":{"b":"2"}}"#;
    let merged = send(&bench, body).await;
    assert_eq!(merged.json()["data"], json!({"a": "1", "b": "2"}));
    let warning = merged.headers["warning"].to_str().expect("it is a text");
    assert_eq!(warning, "299 - \"duplicate field \\\"data\\\"\"");
    let body = r#"{"metadata":{"name":"b"},"data":[],"data":{"a":"b"}}"#;
    let status = send(&bench, body).await.fails(400, "BadRequest");
    let expected = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot \
        unmarshal array into Go struct field ConfigMap.data of type map[string]string";
    assert_eq!(status["message"], expected);
}

#[tokio::test(start_paused = true)]
async fn what_no_operation_of_a_json_patch_has_is_told() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let patch = r#"[{"op":"test","op":"add","path":"/data/k","value":"v","x":1}]"#;
    let media = "application/json-patch+json";
    let answer = bench.call(Method::PATCH, &path, media, patch).await;
    assert_eq!(answer.json()["data"]["k"], "v", "{}", answer.text);
    let warnings: Vec<&str> = answer
        .headers
        .get_all("warning")
        .iter()
        .filter_map(|text| text.to_str().ok())
        .collect();
    let expected = [
        "duplicate field \\\"[0].op\\\"",
        "unknown field \\\"[0].x\\\"",
    ];
    assert_eq!(
        warnings,
        expected.map(|text| format!("299 - \"json patch {text}\""))
    );
    let nothing = bench.call(Method::PATCH, &path, media, "null").await;
    assert_eq!(nothing.code, StatusCode::OK, "{}", nothing.text);
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_creates_names_its_object() {
    let bench = Bench::new().await;
    let path = format!("{CONFIG_MAPS}/a?fieldManager=m");
    let applied = r#"{"kind":"ConfigMap","apiVersion":"v1"}"#;
    let media = "application/apply-patch+yaml";
    let refused = bench.call(Method::PATCH, &path, media, applied).await;
    let status = refused.fails(400, "BadRequest");
    let expected = "the name of the object (a based on URL) was undeterminable: name must be \
        provided";
    assert_eq!(status["message"], expected);
    bench.config_map("a", json!({})).await;
    let merged = bench.call(Method::PATCH, &path, media, applied).await;
    assert_eq!(merged.code, StatusCode::OK, "{}", merged.text);
}

/// The real server decompresses no request: it reads the bytes as they are, which is no JSON.
#[tokio::test(start_paused = true)]
async fn a_compressed_request_cannot_be_read() {
    let bench = Bench::new().await;
    let object = json!({"metadata": {"name": "a"}}).to_string();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    io::Write::write_all(&mut encoder, object.as_bytes()).expect("memory takes everything");
    let compressed = encoder.finish().expect("memory takes everything");
    let headers = [
        ("content-type", "application/json"),
        ("content-encoding", "gzip"),
    ];
    let answer = bench
        .ask(http::Method::POST, CONFIG_MAPS, &headers, compressed)
        .await;
    answer.fails(400, "BadRequest");
}
