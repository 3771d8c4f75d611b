//! Media types: what is answered in which, and which bodies are read. As a genuine API server answered.

use http::Method;

use crate::bench::{Bench, CONFIG_MAPS};
use crate::kinds::definition;

const WIDGETS: &str = "/apis/demo.dev/v1/namespaces/default/widgets";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[tokio::test(start_paused = true)]
async fn media_types_are_negotiated() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let missing = format!("{CONFIG_MAPS}/none");
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for (path, accept, code, media) in [
        // A route is found by whole names of media types alone.
        (CONFIG_MAPS, "application/*", 406, "application/json"),
        (
            CONFIG_MAPS,
            "application/*,application/yaml",
            200,
            "application/yaml",
        ),
        (CONFIG_MAPS, "*/*;q=0.1", 200, "application/json"),
        (&*missing, "application/*", 406, "application/json"),
        ("/api/v1", "application/*", 406, "application/json"),
        ("/api", "application/*", 406, "application/json"),
        // These have no route of their own.
        (WIDGETS, "application/*", 200, "application/json"),
        ("/apis", "application/*", 200, "application/json"),
        ("/apis/apps", "application/*", 200, "application/json"),
        // There are no streams but those of watches.
        (
            CONFIG_MAPS,
            "application/json;stream=x",
            406,
            "application/json",
        ),
        (
            CONFIG_MAPS,
            "application/json;stream=watch",
            200,
            "application/json",
        ),
        (
            "/apis/apps/v1",
            "application/json;stream=x",
            406,
            "application/json",
        ),
        // Errors have no conversions.
        (
            &missing,
            &*format!("{table},application/yaml"),
            404,
            "application/yaml",
        ),
        (&missing, table, 404, "application/json"),
        (
            "/api/v1/none",
            &format!("{table},application/yaml"),
            404,
            "application/yaml",
        ),
        ("/apis/apps/v9", table, 404, "application/json"),
        ("/apis/none/v1", table, 404, "text/plain; charset=utf-8"),
        // These are in one form.
        ("/version", "application/yaml", 406, "application/yaml"),
        ("/version", "text/plain", 406, "application/json"),
        ("/version", "application/*", 406, "application/json"),
        (
            "/version",
            "application/yaml,application/json",
            200,
            "application/json",
        ),
        (
            "/openapi/v3",
            "application/yaml",
            200,
            "text/plain; charset=utf-8",
        ),
        ("/", "application/yaml", 200, "application/json"),
    ] {
        let answer = bench
            .ask(Method::GET, path, &[("accept", accept)], "")
            .await;
        let found = (
            answer.code.as_u16(),
            answer.headers["content-type"].as_bytes(),
        );
        assert_eq!(
            found,
            (code, media.as_bytes()),
            "{path} {accept}: {}",
            answer.text
        );
    }
}

#[tokio::test(start_paused = true)]
async fn aggregated_discovery_comes_before_the_legacy_documents() {
    let bench = Bench::new().await;
    for accept in [
        format!("application/json,{AGGREGATED}"),
        format!("application/json;q=0.9,{AGGREGATED};q=0.1"),
        format!("{AGGREGATED};q=0.1,application/json"),
        format!("text/html,{AGGREGATED}"),
    ] {
        for path in ["/api", "/apis"] {
            let answer = bench
                .ask(Method::GET, path, &[("accept", &accept)], "")
                .await;
            assert_eq!(answer.headers["content-type"], AGGREGATED, "{accept}");
        }
    }
    let stream = format!("{AGGREGATED};stream=x,application/json");
    let answer = bench
        .ask(Method::GET, "/api", &[("accept", &stream)], "")
        .await;
    assert_eq!(answer.json()["kind"], "APIVersions");
}

#[tokio::test(start_paused = true)]
async fn a_tag_of_aggregated_discovery_is_compared_as_a_whole() {
    let bench = Bench::new().await;
    let accept = ("accept", AGGREGATED);
    let first = bench.ask(Method::GET, "/apis", &[accept], "").await;
    let tag = first.headers["etag"].to_str().expect("a text").to_owned();
    assert_eq!(tag.len(), 130);
    for (known, code) in [
        (tag.clone(), 304),
        ("*".to_owned(), 200),
        (format!("\"a\", {tag}"), 200),
        (format!("W/{tag}"), 200),
    ] {
        let headers = [accept, ("if-none-match", known.as_str())];
        let answer = bench.ask(Method::GET, "/apis", &headers, "").await;
        assert_eq!(answer.code, code, "{known}");
    }
}

#[tokio::test(start_paused = true)]
async fn content_types_are_read_as_go_reads_them() {
    let bench = Bench::new().await;
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    for (media, code) in [
        ("application/JSON", 201),
        ("Application/json; charset=utf-8", 201),
        ("application/json;", 201),
        ("APPLICATION/YAML", 201),
        (" application/json", 201),
        ("application/json; charset", 415),
        ("application/json, application/yaml", 415),
        ("application/json/x", 415),
        (";", 415),
    ] {
        let body = r#"{"metadata":{"name":"a"}}"#;
        let answer = bench.call(Method::POST, &path, media, body).await;
        assert_eq!(answer.code, code, "{media}: {}", answer.text);
    }
    let path = "/api/v1/namespaces/default?dryRun=All";
    for (media, code) in [
        ("application/merge-patch+json;x", 200),
        ("application/Merge-patch+json", 415),
    ] {
        let answer = bench.call(Method::PATCH, path, media, "{}").await;
        assert_eq!(answer.code, code, "{media}: {}", answer.text);
    }
}

#[tokio::test(start_paused = true)]
async fn of_yaml_the_first_document_is_read() {
    let bench = Bench::new().await;
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    let first = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n";
    for body in [
        format!("{first}---\n"),
        format!("{first}---\nfoo: [\n"),
        format!("---\n{first}---\nkind: X\n"),
        format!("{first}...\n"),
        format!("{first}...\na: b\n"),
        format!("{first}data: {{a: '---'}}\n---\n"),
        format!("{first}data:\n  a: |\n    ---\n    x\n---\n"),
        format!("{first}--- x"),
        format!("{first}---\nkind: &a x\nb: *c\n"),
        format!("%YAML 1.1\n---\n{first}---\n"),
        "--- {\"metadata\":{\"name\":\"a\"}}\n---\n".to_owned(),
        "{\"metadata\":{\"name\":\"a\"}}\n---\n{\"a\":1}".to_owned(),
        "{\"metadata\":{\"name\":\"a\"}} x".to_owned(),
    ] {
        let answer = bench
            .call(Method::POST, &path, "application/yaml", body.clone())
            .await;
        assert_eq!(answer.code, 201, "{body}: {}", answer.text);
        assert_eq!(answer.json()["metadata"]["name"], "a");
    }
    let twice = format!("{first}metadata: {{name: z}}\n---\nx: 1\n");
    let answer = bench
        .call(Method::POST, &path, "application/yaml", twice)
        .await;
    assert_eq!(answer.json()["metadata"]["name"], "z");
    // An empty one counts, too.
    let empty = format!("---\n---\n{first}");
    let answer = bench
        .call(Method::POST, &path, "application/yaml", empty)
        .await;
    answer.fails(422, "Invalid");
}
