//! Tests of handlers and requests that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use lariat_webhook::{Admission, Decision, Hook};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::support::{Caller, Program, Widget, review, serve, until, widget};

fn creation() -> Value {
    review("CREATE", &widget(&json!({"size": 1})), &Value::Null)
}

/// Serves a handler that fails as the color of the object says.
async fn failing(program: &Program) -> (lariat_webhook::WebhookServer, Caller) {
    let webhooks =
        program
            .webhooks()
            .validate(Hook::new("failing"), |request: Admission<Widget>| {
                let color = request.object().unwrap().unwrap().spec.color.clone();
                assert_ne!(color.as_deref(), Some("early"), "before the future");
                async move {
                    match color.as_deref() {
                        Some("panic") => panic!("inside of the future"),
                        Some("slow") => std::future::pending().await,
                        Some("error") => Err("the database is down".into()),
                        Some("secret") => Err("401: Authorization: Bearer abc.def".into()),
                        _ => Ok(Decision::allow()),
                    }
                }
            });
    serve(webhooks).await
}

#[tokio::test]
async fn a_handler_that_fails_is_a_failed_call_and_no_denial() {
    let program = Program::new().await;
    let (_server, caller) = failing(&program).await;
    let check = async |color: &str, expected: &str| {
        let review = review("CREATE", &widget(&json!({"color": color})), &Value::Null);
        let path = "/validate/failing?timeout=300ms";
        let (status, text) = caller.post(path, review.to_string()).await;
        // API servers quote the text of this status in their error.
        assert_eq!(status, 500, "{text}");
        assert_eq!(
            text,
            format!("the webhook failing.widgets.demo.dev failed: {expected}")
        );
    };
    check("panic", "it panicked").await;
    check("early", "it panicked").await;
    check("error", "the database is down").await;
    check("secret", "401: Authorization: Bearer …").await;
    let begun = Instant::now();
    let review = review("CREATE", &widget(&json!({"color": "slow"})), &Value::Null);
    let (status, text) = caller
        .post("/validate/failing?timeout=300ms", review.to_string())
        .await;
    assert_eq!(status, 500);
    assert!(text.ends_with("it timed out after 270ms"), "{text}");
    // Before the API server gives up, so that it gets the reason.
    assert!(begun.elapsed() < Duration::from_secs(5));
    // The server keeps running.
    let response = caller.review("/validate/failing", &creation()).await;
    assert_eq!(response["allowed"], true);
}

#[tokio::test]
async fn requests_that_are_no_reviews_are_refused_with_what_is_wrong() {
    let program = Program::new().await;
    let (_server, caller) = failing(&program).await;
    let check = async |body: String, expected: &str| {
        let (status, text) = caller.post("/validate/failing", body.clone()).await;
        assert_eq!(status, 400, "{text}");
        assert!(text.contains(expected), "{body}: {text}");
    };
    check(String::new(), "the body is not a valid AdmissionReview").await;
    check("{".to_owned(), "the body is not a valid AdmissionReview").await;
    check("[]".to_owned(), "the body is not a valid AdmissionReview").await;
    let mut other = creation();
    other["apiVersion"] = "admission.k8s.io/v1beta1".into();
    check(
        other.to_string(),
        "only AdmissionReview of admission.k8s.io/v1 is supported",
    )
    .await;
    let mut other = creation();
    other["request"] = Value::Null;
    check(other.to_string(), "the AdmissionReview has no request").await;
    let mut other = creation();
    other["request"]["operation"] = "PATCH".into();
    check(other.to_string(), "unknown operation \"PATCH\"").await;
    let mut other = creation();
    other["request"].as_object_mut().unwrap().remove("uid");
    check(other.to_string(), "missing field `uid`").await;
}

#[tokio::test]
async fn other_paths_methods_and_media_types_are_refused() {
    let program = Program::new().await;
    let (_server, caller) = failing(&program).await;
    let (status, text) = caller
        .post("/validate/missing", creation().to_string())
        .await;
    assert_eq!(
        (status, &*text),
        (404, "there is no webhook at /validate/missing")
    );
    let get = hyper::Request::get("/validate/failing")
        .header("host", "a")
        .body(Full::default());
    let (status, text) = caller.send(get.unwrap()).await.unwrap();
    assert_eq!((status, &*text), (405, "webhooks accept POST, not GET"));
    let text = hyper::Request::post("/validate/failing").header("host", "a");
    let text = text
        .header("content-type", "text/plain")
        .body(Full::new(Bytes::from("{}")));
    let (status, text) = caller.send(text.unwrap()).await.unwrap();
    assert_eq!(
        (status, &*text),
        (415, "webhooks accept application/json, not \"text/plain\"")
    );
    for probe in ["/healthz", "/livez", "/readyz"] {
        let get = hyper::Request::get(probe)
            .header("host", "a")
            .body(Full::default());
        assert_eq!(
            caller.send(get.unwrap()).await.unwrap(),
            (200, "ok".to_owned())
        );
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused() {
    let program = Program::new().await;
    let webhooks = program.webhooks().body_limits(1_000, 1_000);
    let webhooks = webhooks.validate(Hook::new("any"), async |_: Admission<Widget>| {
        Ok(Decision::allow())
    });
    let (_server, caller) = serve(webhooks).await;
    let (status, text) = caller.post("/validate/any", vec![b' '; 1_001]).await;
    assert_eq!(
        (status, &*text),
        (413, "the body is longer than 1000 bytes")
    );
    let body = creation().to_string();
    assert_eq!(
        caller
            .post("/validate/any", format!("{body:<1000}"))
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let program = Program::new().await;
    let (_server, caller) = failing(&program).await;
    let mut stream = caller.connect().await.unwrap();
    let head = "POST /validate/failing?timeout=200ms HTTP/1.1\r\nhost: a\r\n\
                content-type: application/json\r\ncontent-length: 1000\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 1_000];
    let length = stream.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request"), "{answer}");
    assert!(
        answer.contains("the body did not arrive within 180ms"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_call_whose_client_has_gone_is_dropped() {
    struct Sets(Arc<AtomicBool>);
    impl Drop for Sets {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let program = Program::new().await;
    let (began, dropped) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (seen, set) = (Arc::clone(&began), Arc::clone(&dropped));
    let webhooks = program
        .webhooks()
        .validate(Hook::new("long"), move |_: Admission<Widget>| {
            let (seen, sets) = (Arc::clone(&seen), Sets(Arc::clone(&set)));
            async move {
                seen.store(true, Ordering::Relaxed);
                std::future::pending::<()>().await;
                drop(sets);
                Ok(Decision::allow())
            }
        });
    let (_server, caller) = serve(webhooks).await;
    let call = async move { caller.post("/validate/long", creation().to_string()).await };
    tokio::select! {
        answer = call => panic!("{answer:?}"),
        () = until("no call", async || began.load(Ordering::Relaxed).then_some(())) => {}
    }
    until("the call goes on", async || {
        dropped.load(Ordering::Relaxed).then_some(())
    })
    .await;
}
