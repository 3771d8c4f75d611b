//! Paths that are not of objects, and headers of what they answer. As a genuine API server answered.

use http::Method;

use crate::bench::{Bench, text};

#[tokio::test(start_paused = true)]
async fn a_live_server_has_other_checks_than_a_ready_one() {
    let bench = Bench::new().await;
    for (path, code) in [
        ("/livez/etcd", 200),
        ("/healthz/etcd", 200),
        ("/readyz/etcd", 200),
        ("/readyz/informer-sync", 200),
        ("/readyz/shutdown", 200),
        ("/livez/informer-sync", 404),
        ("/healthz/shutdown", 404),
        ("/livez/loopback-serving-certificate", 200),
        ("/readyz/loopback-serving-certificate", 404),
        ("/readyz/autoregister-completion", 200),
    ] {
        assert_eq!(bench.get(path).await.code, code, "{path}");
    }
    let ready = bench.get("/readyz?verbose&exclude=informer-sync").await;
    assert_eq!(
        ready.text,
        "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]etcd-readiness ok\n[+]informer-sync excluded: ok\n\
         [+]autoregister-completion ok\n[+]shutdown ok\nreadyz check passed\n"
    );
    let live = bench.get("/livez?verbose").await;
    assert_eq!(
        live.text,
        "[+]ping ok\n[+]log ok\n[+]loopback-serving-certificate ok\n[+]etcd ok\n\
         [+]autoregister-completion ok\nlivez check passed\n"
    );
}

#[tokio::test(start_paused = true)]
async fn openapi_has_the_headers_of_an_aggregator() {
    let bench = Bench::new().await;
    let index = bench.get("/openapi/v3").await;
    assert_eq!(index.headers["content-type"], "text/plain; charset=utf-8");
    assert!(index.headers.contains_key("last-modified"));
    assert!(!index.headers.contains_key("etag"));
    let index = index.json();
    let url = text(&index, "/paths/version/serverRelativeURL");
    let document = bench.get(url).await;
    let tag = document.headers["etag"].to_str().expect("a text");
    assert_eq!(
        url,
        format!("/openapi/v3/version?hash={}", tag.trim_matches('"'))
    );
    assert_eq!(tag.len(), 130);
    assert!(document.headers.contains_key("last-modified"));
    let expires = document.headers["expires"].to_str().expect("a text");
    assert!(expires.ends_with(" UTC"), "{expires}");

    let moved = bench.get("/openapi/v3/version?hash=A").await;
    assert_eq!(moved.code, 301);
    assert_eq!(moved.headers["content-type"], "application/json");
    assert_eq!(moved.headers["location"], url);
    assert_eq!(moved.headers["etag"], tag);
    for path in ["/openapi/v3/", "/openapi/v3/api/v9"] {
        let answer = bench.get(path).await;
        assert_eq!((answer.code.as_u16(), &*answer.text), (404, ""), "{path}");
    }
    for path in [url, "/openapi/v2"] {
        let html = [("accept", "text/html")];
        let answer = bench.ask(Method::GET, path, &html, "").await;
        assert_eq!(answer.code, 406);
        assert_eq!(answer.headers["vary"], "Accept");
    }
}

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
