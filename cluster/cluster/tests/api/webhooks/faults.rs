//! Webhooks that are down, slow, broken or not who they should be.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::server::{Hook, MUTATING, Reply, VALIDATING, register, webhook};
use crate::bench::{Answer, Bench, CONFIG_MAPS};

async fn create(bench: &Bench) -> Answer {
    let object = json!({"metadata": {"generateName": "m-"}, "data": {"a": "1"}});
    bench.post(CONFIG_MAPS, &object).await
}

/// Checks what a client gets where a webhook cannot be called, and that it may be ignored.
async fn check(client: Value, more: Value, expected: &str) {
    check_client(client, more, &format!("failed to call webhook: {expected}")).await;
}

/// The same, where it may be that there is no client to call it with.
async fn check_client(client: Value, more: Value, expected: &str) {
    for path in [MUTATING, VALIDATING] {
        let bench = Bench::new().await;
        let webhooks = json!([webhook(client.clone(), more.clone())]);
        register(&bench, path, "c", webhooks).await;
        let status = create(&bench).await.fails(500, "InternalError");
        let reason = format!("failed calling webhook \"h.example.com\": {expected}");
        assert_eq!(
            status["message"],
            format!("Internal error occurred: {reason}")
        );

        let mut ignored = webhook(client.clone(), more.clone());
        ignored["failurePolicy"] = "Ignore".into();
        bench.delete(&format!("{path}/c")).await;
        register(&bench, path, "c", json!([ignored])).await;
        assert_eq!(create(&bench).await.code, 201);
        let audit = bench
            .cluster
            .journal()
            .requests()
            .pop()
            .expect("it was just made")
            .audit;
        assert!(audit[0].0.starts_with("failed-open."), "{audit:?}");
    }
}

#[tokio::test]
async fn a_webhook_that_is_down_is_an_error_or_ignored() {
    let hook = Hook::allowing().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut client = hook.client("");
    client["url"] = format!("https://{address}/x").into();
    let expected = format!(
        "Post \"https://{address}/x?timeout=10s\": dial tcp {address}: connect: connection refused"
    );
    check(client, json!({}), &expected).await;
}

/// The clock is paused, so that the time is over as soon as nothing else happens.
#[tokio::test(start_paused = true)]
async fn a_webhook_that_does_not_answer_is_given_up_in_time() {
    let hook = Hook::start(|_, _| Reply::Silent).await;
    let started = Instant::now();
    let expected = format!(
        "Post \"https://{}/x?timeout=7s\": context deadline exceeded",
        hook.address
    );
    check(hook.client("/x"), json!({"timeoutSeconds": 7}), &expected).await;
    assert_eq!(
        started.elapsed().as_secs(),
        Duration::from_secs(4 * 7).as_secs()
    );
}

#[tokio::test]
async fn a_webhook_that_closes_the_connection_is_an_error() {
    let hook = Hook::start(|_, _| Reply::Close).await;
    let expected = format!("Post \"https://{}/x?timeout=10s\": EOF", hook.address);
    check(hook.client("/x"), json!({}), &expected).await;
}

#[tokio::test]
async fn a_webhook_with_an_untrusted_certificate_is_not_asked() {
    let (hook, other) = (Hook::allowing().await, Hook::allowing().await);
    let mut client = hook.client("/x");
    client["caBundle"] = other.client("")["caBundle"].clone();
    let expected = format!(
        "Post \"https://{}/x?timeout=10s\": tls: failed to verify certificate: x509: certificate signed by unknown \
         authority",
        hook.address
    );
    check(client, json!({}), &expected).await;
    assert_eq!(hook.asked(), [json!(null); 0]);
}

/// As `envtest` of controller-runtime registers webhooks. A genuine server asks them.
#[tokio::test]
async fn a_webhook_is_trusted_whose_certificate_is_the_bundle() {
    let hook = Hook::signed(2090).await;
    let bench = Bench::new().await;
    let webhooks = json!([hook.webhook("/x", json!({}))]);
    register(&bench, VALIDATING, "a", webhooks).await;
    assert_eq!(create(&bench).await.code.as_u16(), 201);
    assert_eq!(hook.paths(), ["/x?timeout=10s"]);
    let mut client = hook.client("/x");
    let url = format!("https://localhost:{}/x", hook.address.port());
    client["url"] = url.clone().into();
    let expected = format!(
        "Post \"{url}?timeout=10s\": tls: failed to verify certificate: x509: certificate is valid for \
         hook.default.svc, not localhost"
    );
    check(client, json!({}), &expected).await;
    let hook = Hook::signed(2021).await;
    let expected = format!(
        "Post \"https://{}/x?timeout=10s\": tls: failed to verify certificate: x509: certificate has expired or is \
         not yet valid",
        hook.address
    );
    check(hook.client("/x"), json!({}), &expected).await;
    assert_eq!(hook.asked(), [json!(null); 0]);
}

/// A genuine server calls webhooks of `envtest`, whose URLs end with `//failing`, at `/failing`.
#[tokio::test]
async fn a_webhook_is_called_at_a_path_without_empty_segments() {
    let hook = Hook::allowing().await;
    for (path, called) in [
        ("//failing", "/failing"),
        ("/a//b/", "/a/b"),
        ("/a/./../b", "/b"),
        ("", "/"),
    ] {
        let bench = Bench::new().await;
        let webhooks = json!([hook.webhook(path, json!({}))]);
        register(&bench, VALIDATING, "a", webhooks).await;
        assert_eq!(create(&bench).await.code.as_u16(), 201, "{path}");
        assert_eq!(hook.paths(), [format!("{called}?timeout=10s")], "{path}");
    }
}

/// The bundle is read before anything is connected.
#[tokio::test]
async fn a_bundle_without_authorities_makes_no_client() {
    let pem = |label: &str| format!("-----BEGIN {label}-----\neHg=\n-----END {label}-----\n");
    for (bundle, expected) in [
        ("x".to_owned(), "unable to parse bytes as PEM block"),
        (pem("FOO"), "no valid certificate authority data seen"),
        (
            pem("CERTIFICATE"),
            "failed to parse certificate: x509: malformed certificate",
        ),
    ] {
        let service = json!({"namespace": "default", "name": "none"});
        for mut client in [
            json!({"url": "https://127.0.0.1:1/x"}),
            json!({"service": service}),
        ] {
            client["caBundle"] = BASE64.encode(&bundle).into();
            let expected =
                format!("could not get REST client: unable to load root certificates: {expected}");
            check_client(client, json!({}), &expected).await;
        }
    }
}

#[tokio::test]
async fn a_webhook_with_a_certificate_for_another_name_is_not_asked() {
    let hook = Hook::allowing().await;
    let mut client = hook.client("/x");
    let url = format!("https://localhost:{}/x", hook.address.port());
    client["url"] = url.clone().into();
    let expected = format!(
        "Post \"{url}?timeout=10s\": tls: failed to verify certificate: x509: certificate is valid for \
         hook.default.svc, not localhost"
    );
    check(client, json!({}), &expected).await;
    assert_eq!(hook.asked(), [json!(null); 0]);
}

#[tokio::test]
async fn a_webhook_that_answers_an_error_is_an_error() {
    for (code, expected) in [
        (
            500,
            "an error on the server (\"unknown\") has prevented the request from succeeding",
        ),
        (503, "the server is currently unable to handle the request"),
        (404, "the server could not find the requested resource"),
        (
            302,
            "the server responded with the status code 302 but did not return more information",
        ),
    ] {
        let hook = Hook::start(move |_, _| Reply::Bytes(code, "boom".to_owned())).await;
        check(hook.client("/x"), json!({}), expected).await;
    }
}

#[tokio::test]
async fn a_service_is_called_at_its_endpoints() {
    let hook = Hook::allowing().await;
    let mut client = hook.client("");
    client.as_object_mut().unwrap().remove("url");
    client["service"] = json!({"namespace": "default", "name": "hook", "path": "/p"});
    let url = "Post \"https://hook.default.svc:443/p?timeout=10s\"";
    check(
        client.clone(),
        json!({}),
        &format!("{url}: service \"hook\" not found"),
    )
    .await;

    let bench = Bench::new().await;
    let services = "/api/v1/namespaces/default/services";
    let service =
        json!({"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443, "name": "https"}]}});
    bench.post(services, &service).await;
    register(&bench, VALIDATING, "c", json!([webhook(client, json!({}))])).await;
    let status = create(&bench).await.fails(500, "InternalError");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.ends_with("no endpoints available for service \"hook\""),
        "{message}"
    );
    let slice = json!({"metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4", "ports": [{"name": "https", "port": hook.address.port()}],
        "endpoints": [{"addresses": ["127.0.0.1"]}]});
    let made = bench
        .post(
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            &slice,
        )
        .await;
    // Loopback addresses are refused in slices, so tests name the address themselves.
    assert_eq!(made.code, 422, "{}", made.text);
}

#[tokio::test]
async fn a_service_may_be_placed_by_the_builder() {
    let hook = Hook::allowing().await;
    let mut client = hook.client("");
    client.as_object_mut().unwrap().remove("url");
    client["service"] = json!({"namespace": "default", "name": "hook", "path": "/p"});
    let builder = lariat_cluster::Cluster::builder();
    let builder = builder.webhook_service("default", "hook", hook.address);
    let bench = Bench {
        cluster: builder.start().await.unwrap(),
    };
    register(&bench, VALIDATING, "c", json!([webhook(client, json!({}))])).await;
    assert_eq!(create(&bench).await.code, 201);
    assert_eq!(hook.paths(), ["/p?timeout=10s"]);
}
