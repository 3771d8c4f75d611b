//! Paths that are not of objects, and headers of what they answer. As a genuine API server answered.

use http::Method;

use crate::bench::Bench;

#[tokio::test(start_paused = true)]
async fn a_path_that_does_not_say_what_is_watched_is_an_error_of_the_server() {
    let bench = Bench::new().await;
    let answer = bench.get("/api/v1/watch?timeoutSeconds=1").await;
    assert_eq!(answer.code, 500);
    assert_eq!(
        answer.text,
        "Internal Server Error: \"/api/v1/watch?timeoutSeconds=1\": failed to create RequestInfo: unable to determine \
         kind and namespace from url, /api/v1/watch?timeoutSeconds=1\n"
    );
}

#[tokio::test(start_paused = true)]
async fn the_old_path_of_a_watch_is_read_only() {
    let bench = Bench::new().await;
    bench.config_map("a", serde_json::json!({})).await;
    let own = "/api/v1/watch/namespaces/default/configmaps";
    let one = "/api/v1/watch/namespaces/default/configmaps/a";
    for (path, code) in [
        (own, 405),
        (one, 405),
        ("/api/v1/watch/configmaps", 405),
        ("/api/v1/watch/nodes", 405),
        ("/api/v1/watch/nodes/a", 405),
        ("/api/v1/watch/namespaces/default", 405),
        ("/api/v1/watch/configmaps/a", 404),
        ("/api/v1/watch/namespaces/default/configmaps/a/status", 404),
        ("/api/v1/watch/nodes/a/status", 404),
        ("/api/v1/watch/componentstatuses", 404),
        ("/api/v1/watch/bindings", 404),
        ("/api/v1/watch/namespaces/default/bindings", 404),
        ("/apis/authentication.k8s.io/v1/watch/tokenreviews", 404),
    ] {
        for method in ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let body = r#"{"metadata":{"name":"b"}}"#;
            let answer = bench
                .call(method.clone(), path, "application/json", body)
                .await;
            assert_eq!(answer.code, code, "{method} {path}: {}", answer.text);
        }
        if code == 404 {
            bench.get(path).await.fails(404, "NotFound");
        }
    }
    let left = bench.names("/api/v1/namespaces/default/configmaps").await;
    assert_eq!(left, ["a"]);
}
