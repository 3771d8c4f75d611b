//! Connections that are open and lead to a server that does not work any more.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Client;
use kube::client::Body;
use lariat_client::Http2;
use lariat_core::describe;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use crate::MINUTE;
use crate::dark::pass;
use crate::server::{
    Answer, Server, Speech, balancer, is_watch, listen, quiet, serve, silent, whole,
};
use crate::transport::watch;

/// Sends a list, and returns the status of the answer, which is read to its end.
async fn list(client: &Client) -> u16 {
    let request = Request::get("/api/v1/pods?limit=1").body(Body::empty());
    let answer = client.send(request.expect("it is a request"));
    let answer = time::timeout(MINUTE, answer).await.expect("it is answered");
    let answer = answer.expect("it is answered");
    let status = answer.status().as_u16();
    answer.into_body().collect().await.expect("it is read");
    status
}

#[tokio::test]
async fn failing_server_is_left_for_a_fresh_connection_with_its_watches() {
    let server = balancer(Speech::Http2(100), |number, request| match number {
        // It has lost etcd, and answers watches from its cache.
        0 if !is_watch(request) => whole(504, "{}"),
        _ => quiet(request),
    });
    let client = server.client(Http2::PriorKnowledge).await;
    let body = watch(&client, 0).await.into_body();
    let mut moved = JoinSet::new();
    moved.spawn(body.collect());
    for _ in 0..5 {
        assert_eq!(list(&client).await, 504);
        assert_eq!(server.connections(), 1);
    }
    assert_eq!(
        list(&client).await,
        200,
        "the sixth leads to the good server"
    );
    let is_moved = moved.try_join_next().is_some();
    assert!(!is_moved, "nothing has shown that it is better");
    assert_eq!(list(&client).await, 200);
    let end = time::timeout(MINUTE, moved.join_next())
        .await
        .expect("the watch ends");
    let end = end.expect("there is one");
    let error = describe(&end.expect("no panic").expect_err("it is cut"));
    assert!(error.contains("another connection works"), "{error}");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn server_that_always_fails_causes_few_fresh_connections() {
    for speech in [Speech::Http2(100), Speech::Http1] {
        let server = balancer(speech, |_, request| {
            if is_watch(request) {
                silent()
            } else {
                whole(503, "{}")
            }
        });
        let http2 = match speech {
            Speech::Http1 => Http2::Off,
            Speech::Http2(_) => Http2::PriorKnowledge,
        };
        let client = server.client(http2).await;
        let body = watch(&client, 0).await.into_body();
        let mut watched = JoinSet::new();
        watched.spawn(body.collect());
        let begun = Instant::now();
        for _ in 0..200 {
            assert_eq!(list(&client).await, 503);
        }
        // One at once, and then at most one every ten seconds; over HTTP/1.1 the watch has one of its own.
        let most = 3 + begun.elapsed().as_secs() as usize / 10;
        assert!(server.connections() <= most, "{}", server.connections());
        assert!(
            watched.try_join_next().is_none(),
            "no other server is better"
        );
    }
}

#[tokio::test]
async fn refusals_keep_the_connection() {
    let server = balancer(Speech::Http2(100), |_, _| whole(429, "{}"));
    let client = server.client(Http2::PriorKnowledge).await;
    for _ in 0..20 {
        assert_eq!(list(&client).await, 429);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn idle_http1_connection_of_a_failing_server_is_left() {
    let server = balancer(Speech::Http1, |number, request| match number {
        0 => whole(504, "{}"),
        _ => quiet(request),
    });
    let client = server.client(Http2::Off).await;
    for _ in 0..5 {
        assert_eq!(list(&client).await, 504);
    }
    assert_eq!(list(&client).await, 200);
    assert_eq!(server.connections(), 2);
}

/// Refuses further connections once one was opened.
#[tokio::test]
async fn suspect_connection_is_used_while_no_fresh_one_can_be_opened() {
    let number = AtomicUsize::new(0);
    let server = Server::with(listen(0), move |stream| {
        let is_first = number.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if is_first {
                serve(
                    stream,
                    Speech::Http2(100),
                    Arc::new(|_: &_| whole(500, "{}")),
                )
                .await;
            }
        }
    });
    let client = server.client(Http2::PriorKnowledge).await;
    for _ in 0..8 {
        assert_eq!(list(&client).await, 500);
    }
}

/// Answers pings and settings, as hyper does, and requests as a function says.
async fn answer<F>(stream: TcpStream, play: impl Fn() -> F + Clone + Send + 'static)
where
    F: Future<Output = Answer> + Send + 'static,
{
    let answer = service_fn(move |_: Request<Incoming>| {
        let answer = play();
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let _ = server.serve_connection(TokioIo::new(stream), answer).await;
}

#[tokio::test]
async fn connection_without_answers_or_data_is_left() {
    for has_head in [false, true] {
        let number = AtomicUsize::new(0);
        let (sender, mut asked) = mpsc::unbounded_channel();
        let server = Server::with(listen(0), move |stream| {
            let is_first = number.fetch_add(1, Ordering::Relaxed) == 0;
            let sender = sender.clone();
            answer(stream, move || {
                let sender = sender.clone();
                async move {
                    let _ = sender.send(());
                    match (is_first, has_head) {
                        (true, false) => std::future::pending().await,
                        (true, true) => silent(),
                        (false, _) => whole(200, "{}"),
                    }
                }
            })
        });
        let client = server.client(Http2::PriorKnowledge).await;
        let mut hung = JoinSet::new();
        hung.spawn({
            let client = client.clone();
            async move { list(&client).await }
        });
        asked.recv().await.expect("it is asked");
        if has_head {
            // Until the head has arrived, and the body is waited for.
            time::sleep(Duration::from_millis(200)).await;
        }
        pass(Duration::from_secs(31)).await;
        hung.shutdown().await;
        assert_eq!(list(&client).await, 200, "{has_head}");
        assert_eq!(server.connections(), 2);
    }
}

/// Answers requests until the connection ends, and resets every second stream or closes after the first.
async fn misbehave(stream: TcpStream, closes: bool) {
    let mut connection = h2::server::handshake(stream).await.expect("it is HTTP/2");
    let mut count = 0;
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        count += 1;
        if !closes && count % 2 == 0 {
            respond.send_reset(h2::Reason::INTERNAL_ERROR);
            continue;
        }
        let send = respond.send_response(Response::new(()), false);
        let mut send = send.expect("it is still there");
        send.send_data(Bytes::from_static(b"{}"), true)
            .expect("it is still there");
        if closes {
            connection.graceful_shutdown();
        }
    }
}

#[tokio::test]
async fn connection_that_resets_every_second_stream_is_kept() {
    let server = Server::with(listen(0), |stream| misbehave(stream, false));
    let client = server.client(Http2::PriorKnowledge).await;
    for number in 0..20 {
        let request = Request::get("/version").body(Body::empty()).unwrap();
        let answer = time::timeout(MINUTE, client.send(request)).await;
        let answer = answer.expect("it is answered");
        assert_eq!(answer.is_ok(), number % 2 == 0);
        if let Ok(answer) = answer {
            answer.into_body().collect().await.expect("it is read");
        }
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn closing_connection_is_followed_by_another_without_a_failure() {
    let server = Server::with(listen(0), |stream| misbehave(stream, true));
    let client = server.client(Http2::PriorKnowledge).await;
    for _ in 0..10 {
        assert_eq!(list(&client).await, 200, "each is a page of a list");
    }
    assert!(server.connections() > 1, "{}", server.connections());
}

/// Whoever polls a request opens the connection, and drives it.
#[test]
fn connection_of_a_runtime_that_was_shut_down_is_not_used_again() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let builder = builder.worker_threads(2).enable_all();
        builder.build().expect("threads can be started")
    };
    let (of_client, other) = (runtime(), runtime());
    let (server, client) = of_client.block_on(async {
        let server = Server::start(Speech::Http2(100), quiet).await;
        let client = server.client(Http2::PriorKnowledge).await;
        (server, client)
    });
    assert_eq!(other.block_on(list(&client)), 200);
    other.shutdown_background();
    assert_eq!(of_client.block_on(list(&client)), 200);
    assert_eq!(server.connections(), 2);
}
