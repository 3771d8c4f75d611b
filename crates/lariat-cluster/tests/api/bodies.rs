//! Bodies of requests: how large, and in what encoding.

use std::io;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::json;
use tower_service::Service;

use crate::bench::{Bench, CONFIG_MAPS};

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
