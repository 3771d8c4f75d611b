//! Answers that do not come, and refusals that ask for patience, in virtual time.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, TryStreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::client::Body;
use lariat_client::{Answering, CountedClient, retry_after};
use lariat_core::describe;
use parking_lot::Mutex;
use tokio::time::{self, Instant};

const HOUR: Duration = Duration::from_secs(3600);

/// A refusal: status, seconds to wait, body.
#[derive(Clone, Copy)]
struct Refusal(u16, Option<u64>, &'static str);

/// What was asked: method and body.
type Asked = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A client of a server that refuses so many requests and then answers with what was sent.
fn refusing(refusal: Refusal, times: usize) -> (Client, Asked) {
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let log = Arc::clone(&log);
        async move {
            let method = request.method().to_string();
            let body = request
                .into_body()
                .collect()
                .await
                .expect("it is read")
                .to_bytes();
            let count = log.lock().len();
            log.lock().push((method, body.to_vec()));
            if count >= times {
                let object = if body.is_empty() {
                    r#"{"items":[],"metadata":{}}"#.into()
                } else {
                    body
                };
                return Ok::<_, Infallible>(Response::new(Body::from(object)));
            }
            let mut answer = Response::new(Body::from(refusal.2.as_bytes().to_vec()));
            *answer.status_mut() = refusal.0.try_into().expect("it is a status");
            if let Some(seconds) = refusal.1 {
                answer.headers_mut().insert("retry-after", seconds.into());
            }
            Ok(answer)
        }
    });
    (Client::new(service, "default"), asked)
}

/// A client of a server that answers nothing.
fn silent() -> Client {
    let service = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, Infallible>>()
    });
    Client::new(service, "default")
}

/// Returns a client whose requests are answered within a time.
fn answering(client: Client, timeout: Duration) -> Client {
    Client::new(
        Answering::new(CountedClient::new(client), timeout),
        "default",
    )
}

fn maps(client: Client) -> Api<ConfigMap> {
    Api::default_namespaced(answering(client, Answering::TIMEOUT))
}

fn object() -> ConfigMap {
    serde_json::from_value(serde_json::json!({"metadata": {"name": "a"}})).expect("it is JSON")
}

const TOO_MANY: Refusal = Refusal(429, Some(1), "Too many requests, please try again later.\n");

#[tokio::test(start_paused = true)]
async fn a_write_that_is_refused_for_now_is_sent_again_when_the_server_says() {
    let (client, asked) = refusing(TOO_MANY, 3);
    let start = Instant::now();
    let made = maps(client).create(&PostParams::default(), &object()).await;
    assert_eq!(made.unwrap().metadata.name.as_deref(), Some("a"));
    assert_eq!(start.elapsed().as_secs(), 3);
    let asked = asked.lock();
    assert_eq!(asked.len(), 4);
    assert!(asked.iter().all(|each| *each == asked[0]), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_stays_is_readable_and_says_when_to_come_again() {
    let (client, asked) = refusing(TOO_MANY, usize::MAX);
    let made = maps(client).create(&PostParams::default(), &object()).await;
    let error = made.unwrap_err();
    assert_eq!(asked.lock().len(), 11, "ten times again");
    let text = describe(&error);
    assert_eq!(
        text,
        "ApiError: Too many requests, please try again later.: TooManyRequests"
    );
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 429));
    assert_eq!(retry_after(&error), Some(Duration::from_secs(1)));
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_is_asked_again_for_reads_and_not_for_writes() {
    let overloaded = Refusal(503, Some(2), "overloaded");
    let (client, asked) = refusing(overloaded, 2);
    maps(client).list(&ListParams::default()).await.unwrap();
    assert_eq!(asked.lock().len(), 3);
    let (client, asked) = refusing(overloaded, 2);
    let made = maps(client).create(&PostParams::default(), &object()).await;
    assert_eq!(
        describe(&made.unwrap_err()),
        "ApiError: overloaded: ServiceUnavailable"
    );
    assert_eq!(asked.lock().len(), 1, "it may have been carried out");
}

#[tokio::test(start_paused = true)]
async fn what_would_take_too_long_is_left_to_the_caller() {
    for seconds in [None, Some(300)] {
        let (client, asked) = refusing(Refusal(429, seconds, "later"), usize::MAX);
        let start = Instant::now();
        let made = maps(client).create(&PostParams::default(), &object()).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(asked.lock().len(), 1);
        let error = made.unwrap_err();
        assert_eq!(retry_after(&error), seconds.map(Duration::from_secs));
    }
    // Twenty-nine seconds go into the time for an answer twice.
    let (client, asked) = refusing(Refusal(429, Some(29), "later"), usize::MAX);
    let start = Instant::now();
    let made = maps(client).create(&PostParams::default(), &object()).await;
    assert!(matches!(made, Err(kube::Error::Api(_))));
    assert_eq!((asked.lock().len(), start.elapsed().as_secs()), (3, 58));
}

#[tokio::test(start_paused = true)]
async fn a_status_of_the_server_is_passed_on_as_it_is() {
    let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no \"a\"","reason":"NotFound","details":{"name":"a"},"code":404}"#;
    let (client, _) = refusing(Refusal(404, None, status), usize::MAX);
    let kube::Error::Api(status) = maps(client).get("a").await.unwrap_err() else {
        panic!("it is one");
    };
    assert_eq!(
        (&*status.message, &*status.reason),
        ("no \"a\"", "NotFound")
    );
    assert_eq!(status.details.unwrap().name, "a");
}

#[tokio::test(start_paused = true)]
async fn a_page_for_browsers_is_not_shown() {
    let page = Refusal(502, None, "<html><body>Bad Gateway</body></html>");
    let (client, _) = refusing(page, usize::MAX);
    let error = describe(&maps(client).get("a").await.unwrap_err());
    let expected = "ApiError: the server, or a proxy before it, answered 502 Bad Gateway without a reason: Unknown";
    assert_eq!(error, expected);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_not_answered_fails_and_says_that_it_may_have_happened() {
    let start = Instant::now();
    let deleted = maps(silent()).delete("a", &DeleteParams::default()).await;
    assert_eq!(start.elapsed().as_secs(), 65);
    assert_eq!(
        describe(&deleted.unwrap_err()),
        "DELETE /api/v1/namespaces/default/configmaps/a: no answer from the API server within 65s; the request may have been carried out nevertheless"
    );
    let read = maps(silent()).get("a").await;
    assert_eq!(
        describe(&read.unwrap_err()),
        "GET /api/v1/namespaces/default/configmaps/a: no answer from the API server within 65s"
    );
}

#[tokio::test(start_paused = true)]
async fn the_time_for_an_answer_can_be_chosen_and_zero_is_any() {
    for (chosen, expected) in [(Duration::from_secs(5), 5), (Duration::ZERO, 3600)] {
        let maps: Api<ConfigMap> = Api::default_namespaced(answering(silent(), chosen));
        let start = Instant::now();
        let _ = time::timeout(HOUR, maps.get("a")).await;
        assert_eq!(start.elapsed().as_secs(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn watches_and_calls_into_pods_may_take_any_time() {
    let client = answering(silent(), Answering::TIMEOUT);
    for path in [
        "pods?watch=true",
        "pods/a/log?follow=true",
        "services/a/proxy/x",
    ] {
        let uri = format!("/api/v1/namespaces/default/{path}");
        let request = Request::get(uri).body(Body::empty()).unwrap();
        time::timeout(HOUR, client.send(request))
            .await
            .expect_err("it has no limit");
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_without_end_is_left_to_the_caller() {
    let (client, asked) = refusing(Refusal(429, Some(10_u64.pow(19)), "later"), usize::MAX);
    let made = maps(client).create(&PostParams::default(), &object()).await;
    let error = made.unwrap_err();
    assert_eq!(asked.lock().len(), 1);
    let longest = Duration::from_secs(u32::MAX.into());
    assert_eq!(retry_after(&error), Some(longest));
}

#[tokio::test(start_paused = true)]
async fn what_a_program_answers_is_passed_on_as_it_is() {
    for (path, status) in [
        ("pods/a/proxy/orders", 429),
        ("services/a/proxy", 503),
        ("pods/a/proxy/no-such-order", 404),
    ] {
        let text = "<h1>as the program says it</h1>";
        let (client, asked) = refusing(Refusal(status, Some(1), text), usize::MAX);
        let client = answering(client, Answering::TIMEOUT);
        for method in ["GET", "POST"] {
            let uri = format!("/api/v1/namespaces/default/{path}");
            let request = Request::builder().method(method).uri(uri);
            let answer = client.send(request.body(Body::empty()).unwrap()).await;
            let answer = answer.unwrap();
            assert_eq!(answer.status().as_u16(), status);
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, text);
        }
        assert_eq!(asked.lock().len(), 2, "each is sent once");
    }
}

/// A client of a server that refuses with a body that is made for each answer.
fn refusing_with<S>(body: fn() -> S) -> Client
where
    S: Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static,
{
    let service = tower::service_fn(move |_: Request<Body>| {
        let body = StreamBody::new(body().map_ok(Frame::data));
        let mut answer = Response::new(body);
        *answer.status_mut() = http::StatusCode::FORBIDDEN;
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn a_refusal_whose_body_cannot_be_read_keeps_its_status() {
    let long = || stream::iter((0..3).map(|_| Ok(Bytes::from(vec![b'x'; 1 << 19]))));
    let broken = || stream::iter([Err(std::io::ErrorKind::ConnectionReset.into())]);
    let hanging = || stream::pending();
    for client in [
        refusing_with(long),
        refusing_with(broken),
        refusing_with(hanging),
    ] {
        let read = time::timeout(HOUR, maps(client).get("a")).await;
        let error = read.expect("it is answered").unwrap_err();
        assert_eq!(
            describe(&error),
            "ApiError: the server, or a proxy before it, answered 403 Forbidden without a reason: Forbidden"
        );
    }
}
