//! Servers and proxies that send too much.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::client::Body;
use lariat_cache::{InitialList, KindOptions, Phase, Query, SharedCacheFactory, Storage};
use lariat_core::describe;
use tokio::time;
use tower_service::Service;

use crate::bench::{MINUTE, any_body, config_maps, no_client};
use crate::script::{
    Answer, Ask, BodyEnd, Script, Scripted, event, list, list_text, object, quiet,
};

/// A body that begins with a text and goes on with spaces, and counts them.
fn endless(first: String, count: &Arc<AtomicUsize>) -> Answer {
    let count = Arc::clone(count);
    let spaces = futures::stream::repeat_with(move || {
        count.fetch_add(100_000, Ordering::Relaxed);
        Ok(Frame::data(Bytes::from_static(&[b' '; 100_000])))
    });
    let first = futures::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(first)))]);
    let body = StreamBody::new(first.chain(spaces));
    Answer::Body(body.map_err(|never| match never {}).boxed_unsync())
}

fn factory(options: KindOptions) -> SharedCacheFactory {
    SharedCacheFactory::builder(no_client())
        .default_options(options)
        .build()
}

#[tokio::test(start_paused = true)]
async fn endless_line_of_a_watch_is_cut_at_16_mib_and_the_kind_listed() {
    let count = Arc::new(AtomicUsize::new(0));
    let sent = Arc::clone(&count);
    let bench = Scripted::start(move |ask| match (ask.watch, ask.number) {
        (false, _) => list(10 + ask.number as u64, "", &["a"]),
        (true, 0) => endless(
            event("ADDED", "b", 11) + r#"{"type":"ADDED","object":{"data":{"a":""#,
            &count,
        ),
        (true, _) => quiet(),
    });
    time::sleep(MINUTE).await;
    assert!(
        bench
            .recorder
            .reported()
            .contains(&"b added at 11".to_owned())
    );
    assert_eq!(
        bench.script.lists(),
        2,
        "what the line would have said is listed"
    );
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent <= 17 * 1024 * 1024, "{sent} bytes were read");
}

#[tokio::test(start_paused = true)]
async fn compressed_watch_is_refused() {
    let script = Script::new(|ask| {
        if ask.watch {
            Answer::Whole(200, vec![("content-encoding", "gzip")], "bomb".to_owned())
        } else {
            list(10, "", &["a"])
        }
    });
    let bench = Scripted::of(script);
    time::sleep(MINUTE / 60).await;
    let error = bench.status().last_error.expect("there is one");
    assert_eq!(
        error,
        "watch: malformed answer: unexpected Content-Encoding"
    );
}

#[tokio::test(start_paused = true)]
async fn error_without_end_is_read_in_part() {
    let count = Arc::new(AtomicUsize::new(0));
    let sent = Arc::clone(&count);
    let service = tower::service_fn(move |_: Request<Body>| {
        let count = Arc::clone(&count);
        let frames = futures::stream::repeat_with(move || {
            count.fetch_add(10_000, Ordering::Relaxed);
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b' '; 10_000])))
        });
        let mut answer = Response::new(StreamBody::new(frames.boxed()));
        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        async move { Ok::<_, Infallible>(answer) }
    });
    let client = Client::new(service, "default");
    let factory = SharedCacheFactory::new(client);
    let resource =
        lariat_core::ResourceKind::new(config_maps(), "configmaps", lariat_core::Scope::Namespaced);
    let kind = factory.clients().for_resource_kind(&resource);
    let informer = factory.for_kind(config_maps());
    factory.start();
    time::sleep(MINUTE / 60).await;
    let error = informer.status().last_error.expect("there is one");
    assert!(error.starts_with("watch refused: 503"), "{error}");
    let sent = sent.load(Ordering::Relaxed);
    // Two attempts, at most.
    assert!(sent <= 200_000, "{sent} bytes were read");
    drop(kind);
}

/// A server with ten objects, in pages.
fn pages(ask: &Ask) -> Answer {
    let size = ask.query.strip_prefix("limit=").expect("it is a list");
    let size: usize = size[..size.find('&').unwrap_or(size.len())]
        .parse()
        .expect("a number");
    let token = ask.query.split("continue=").nth(1);
    let from: usize = token.map_or(0, |token| token.parse().expect("a number"));
    let to = (from + size).min(100);
    let items: Vec<String> = (from..to).map(|n| object(&format!("a{n}"), 10)).collect();
    let token = if to < 100 {
        to.to_string()
    } else {
        String::new()
    };
    Answer::Whole(200, Vec::new(), list_text(10, &token, &items))
}

#[tokio::test(start_paused = true)]
async fn page_above_the_limit_is_followed_by_smaller_pages() {
    let script = Script::new(|ask| if ask.watch { quiet() } else { pages(ask) });
    let options = KindOptions::default().initial_list(InitialList::List);
    // A hundred objects have about 7,000 bytes.
    let factory = factory(options.list_limit(5_000));
    let informer = factory.for_source(config_maps(), Arc::new(script.clone()));
    factory.start();
    assert!(informer.synced().await);
    assert_eq!(informer.store().len(), 100);
    let queries = script.queries(false);
    assert_eq!(queries, ["limit=500", "limit=50", "limit=50&continue=50"]);
}

#[tokio::test(start_paused = true)]
async fn list_above_the_limit_names_it() {
    let script = Script::new(|_| Answer::Pieces(vec![" ".repeat(6_000)], BodyEnd::Silence));
    let options = KindOptions::default().initial_list(InitialList::List);
    let factory = factory(options.list_limit(5_000));
    let informer = factory.for_source(config_maps(), Arc::new(script));
    factory.start();
    time::sleep(MINUTE).await;
    let status = informer.status();
    assert_ne!(status.phase, Phase::Synced);
    let expected = "list: the answer is too large: a list has more than 5000 bytes";
    assert_eq!(status.last_error.as_deref(), Some(expected));
}

#[tokio::test(start_paused = true)]
async fn continue_tokens_in_a_circle_are_an_error() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number % 4) {
        (true, _) => quiet(),
        (false, number) => list(10, &number.to_string(), &["a"]),
    });
    time::sleep(MINUTE / 60).await;
    let error = bench.status().last_error.expect("there is one");
    assert!(error.contains("leads to an earlier page"), "{error}");
    assert!(bench.script.lists() < 30, "{}", bench.script.lists());
}

/// A client whose lists of more than a page are answered by a function of the continue token, with ten objects before.
async fn loading(play: impl Fn(&str) -> (u16, String) + Clone + Send + Sync + 'static) -> Loading {
    let cluster = crate::bench::cluster().await;
    let writer = crate::bench::Writer::new(cluster.client());
    for number in 0..10 {
        writer.create(&format!("a{number}")).await;
    }
    let (service, asked) = (cluster.service(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (mut service, play) = (service.clone(), play.clone());
        let query = request.uri().query().unwrap_or_default().to_owned();
        let is_load = query.starts_with("limit=500") && request.uri().path().contains("configmaps");
        count.fetch_add(usize::from(is_load), Ordering::Relaxed);
        async move {
            let token = query.split("continue=").nth(1).unwrap_or_default();
            let (status, text) = if is_load {
                play(token)
            } else {
                (0, String::new())
            };
            if status == 0 {
                let answer = service.call(request).await?;
                return Ok::<_, tower::BoxError>(answer.map(any_body));
            }
            let mut answer = Response::new(any_body(Body::from(text.into_bytes())));
            *answer.status_mut() = StatusCode::from_u16(status)?;
            Ok(answer)
        }
    });
    let factory = SharedCacheFactory::builder(Client::new(service, "default"))
        .default_options(KindOptions::default().storage(Storage::OnDemand))
        .build();
    let informer = factory.for_kind(config_maps());
    let maps = informer.cache::<ConfigMap>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("it syncs");
    let loaded = informer.load_all(&Query::all()).await;
    Loading {
        loaded: loaded
            .map(|all| all.len())
            .map_err(|error| describe(&error)),
        asked: asked.load(Ordering::Relaxed),
        _kept: (factory, maps),
    }
}

struct Loading {
    loaded: Result<usize, String>,
    asked: usize,
    _kept: (SharedCacheFactory, lariat_cache::Cache<ConfigMap>),
}

#[tokio::test(start_paused = true)]
async fn load_whose_continue_token_expires_begins_again_twice() {
    let expired = r#"{"kind":"Status","status":"Failure","code":410,"reason":"Expired"}"#;
    let fails = Arc::new(AtomicUsize::new(0));
    for (failures, expected) in [(2, true), (9, false)] {
        let fails = Arc::clone(&fails);
        fails.store(failures, Ordering::Relaxed);
        let loading = loading(move |token| {
            let is_refused = || {
                let less = |left: usize| left.checked_sub(1);
                fails
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
                    .is_ok()
            };
            match token {
                // One object for each, and the rest is loaded alone.
                "" => (200, list_text(10, "next", &[])),
                _ if is_refused() => (410, expired.to_owned()),
                _ => (200, list_text(10, "", &[])),
            }
        })
        .await;
        assert_eq!(loading.asked, 6);
        assert_eq!(loading.loaded.is_ok(), expected, "{:?}", loading.loaded);
    }
}

#[tokio::test(start_paused = true)]
async fn load_whose_continue_tokens_repeat_is_an_error() {
    let loading = loading(|_| (200, list_text(10, "again", &[]))).await;
    let error = loading.loaded.expect_err("it has no end");
    assert!(error.contains("leads to an earlier page"), "{error}");
    assert_eq!(loading.asked, 2);
}
