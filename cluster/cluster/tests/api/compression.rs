//! Large answers to clients that take them compressed.

use std::io::Read;

use crate::bench::{Answer, Bench, CONFIG_MAPS};
use flate2::read::GzDecoder;
use http::Method;
use serde_json::{Value, json};

const ZIPPED: &[(&str, &str)] = &[("accept-encoding", "deflate, gzip")];

/// The length from which on a real server compresses.
const THRESHOLD: usize = 128 * 1024;

async fn ask(bench: &Bench, path: &str, headers: &[(&str, &str)]) -> Answer {
    bench.ask(Method::GET, path, headers, "").await
}

fn is_compressed(answer: &Answer) -> bool {
    match answer.headers.get("content-encoding") {
        None => false,
        Some(encoding) => {
            assert_eq!(encoding, "gzip");
            assert_eq!(answer.headers["vary"], "Accept-Encoding");
            true
        }
    }
}

fn decompressed(answer: &Answer) -> String {
    assert!(is_compressed(answer));
    let mut text = String::new();
    let mut decoder = GzDecoder::new(&answer.bytes[..]);
    decoder.read_to_string(&mut text).expect("it is gzip");
    text
}

async fn config_map(bench: &Bench, name: &str, length: usize) {
    let data = json!({"metadata": {"name": name}, "data": {"a": "x".repeat(length)}});
    bench.post(CONFIG_MAPS, &data).await;
}

#[tokio::test(start_paused = true)]
async fn a_large_list_and_a_large_object_are_compressed() {
    let bench = Bench::new().await;
    for number in 0..30 {
        config_map(&bench, &format!("n{number}"), 20_000).await;
    }
    config_map(&bench, "large", THRESHOLD).await;
    for path in [CONFIG_MAPS, &format!("{CONFIG_MAPS}/large")] {
        let plain = ask(&bench, path, &[]).await;
        assert!(!is_compressed(&plain));
        let zipped = ask(&bench, path, ZIPPED).await;
        assert!(zipped.bytes.len() * 10 < plain.bytes.len());
        assert_eq!(decompressed(&zipped), plain.text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_answer_goes_as_it_is() {
    let bench = Bench::new().await;
    config_map(&bench, "a", 100).await;
    let object: Value = ask(&bench, &format!("{CONFIG_MAPS}/a"), &[]).await.json();
    let list = ask(&bench, CONFIG_MAPS, ZIPPED).await;
    assert!(!is_compressed(&list));
    assert_eq!(list.json()["items"][0]["metadata"], object["metadata"]);
    // A list one byte short of the threshold, and one of exactly that length.
    let padding = THRESHOLD - list.bytes.len() + 100;
    for (padding, expected) in [(padding - 1, false), (padding, true)] {
        let data = json!({"data": {"a": "x".repeat(padding)}});
        bench.merge(&format!("{CONFIG_MAPS}/a"), data).await;
        let length = ask(&bench, CONFIG_MAPS, &[]).await.bytes.len();
        assert_eq!(length >= THRESHOLD, expected, "{length}");
        let answer = ask(&bench, CONFIG_MAPS, ZIPPED).await;
        assert_eq!(is_compressed(&answer), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn who_does_not_take_gzip_does_not_get_it() {
    let bench = Bench::new().await;
    config_map(&bench, "large", THRESHOLD).await;
    for encoding in ["", "identity", "gzip2", "deflate"] {
        let headers = [("accept-encoding", encoding)];
        assert!(!is_compressed(&ask(&bench, CONFIG_MAPS, &headers).await));
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_never_compressed() {
    let bench = Bench::new().await;
    config_map(&bench, "large", THRESHOLD).await;
    let path = format!("{CONFIG_MAPS}?watch=1");
    let mut watch = bench.watch_with(&path, ZIPPED).await;
    assert_eq!(watch.short().await, "ADDED large");
}
