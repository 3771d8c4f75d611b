//! Arguments and results of handlers.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DynamicObject;
use lariat_cache::Metadata;
use lariat_controller::{Context, Outcome};
use parking_lot::Mutex;
use tokio::time;

use crate::bench::{Bench, SECOND, key, settle};

#[tokio::test(start_paused = true)]
async fn handlers_of_any_view_are_called_in_the_order_of_their_registration() {
    let bench = Bench::new().await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&order);
    let log = move |what: String| {
        let order = Arc::clone(&shared);
        async move {
            order.lock().push(what);
            Ok(Outcome::done())
        }
    };
    let push = log.clone();
    bench
        .config_maps
        .register_handler("typed", move |cx: Context<ConfigMap>| {
            let object = cx.object().unwrap().unwrap();
            push(format!("typed {}", object.metadata.name.as_ref().unwrap()))
        })
        .unwrap();
    let push = log.clone();
    let dynamic = bench.config_maps.view::<DynamicObject>();
    dynamic
        .register_handler("dynamic", move |cx: Context<DynamicObject>| {
            let object = cx.object().unwrap().unwrap();
            push(format!("dynamic {}", object.types.as_ref().unwrap().kind))
        })
        .unwrap();
    let push = log.clone();
    let metadata = bench.config_maps.view::<Metadata>();
    metadata
        .register_handler("metadata", move |cx: Context<Metadata>| {
            push(format!("metadata {}", cx.object().unwrap().unwrap().key()))
        })
        .unwrap();
    bench.start().await;
    bench.create("a").await;
    settle().await;
    assert_eq!(
        *order.lock(),
        ["typed a", "dynamic ConfigMap", "metadata default/a"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_knows_why_it_happens() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    bench.start().await;
    bench.create("a").await;
    settle().await;
    bench.change("a", "1").await;
    settle().await;
    bench.config_maps.enqueue(&key("a"));
    let line = line!() - 1;
    settle().await;
    bench.delete("a").await;
    settle().await;
    let causes: Vec<String> = calls.all().into_iter().map(|call| call.causes).collect();
    assert!(causes[0].starts_with("added at "), "{causes:?}");
    assert!(causes[1].starts_with("updated "), "{causes:?}");
    assert!(causes[2].starts_with("enqueued at "), "{causes:?}");
    assert!(
        causes[2].contains(&format!("handlers.rs:{line}:")),
        "{causes:?}"
    );
    assert!(causes[3].starts_with("deleted at "), "{causes:?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_encoded_is_the_failure_of_its_handler() {
    struct Bad;
    impl serde::Serialize for Bad {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            panic!("no way")
        }
    }
    let bench = Bench::new().await;
    bench.on("bad", |_| async { Ok(Outcome::done().with_updated(Bad)) });
    let good = bench.record("good");
    bench.start().await;
    bench.create("a").await;
    settle().await;
    assert_eq!(good.len(), 1);
    let bad = &bench.status().handlers[0];
    assert!(bad.panics >= 1 && bad.failures == bad.panics, "{bad:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_returns_is_seen_by_those_after_it() {
    let bench = Bench::new().await;
    bench
        .config_maps
        .register_handler("writer", |cx: Context<ConfigMap>| async move {
            let Some(object) = cx.object()? else {
                return Ok(Outcome::done());
            };
            let mut object = ConfigMap::clone(&object);
            object
                .data
                .get_or_insert_default()
                .insert("value".into(), "written".into());
            // As if the API server had responded with this, long before the watch publishes it.
            object.metadata.resource_version = Some("999999".into());
            Ok(Outcome::done().with_updated(object))
        })
        .unwrap();
    let reader = bench.record("reader");
    bench.start().await;
    bench.create("a").await;
    settle().await;
    assert_eq!(reader.last().value.as_deref(), Some("written"));

    bench.delete("a").await;
    settle().await;
    assert_eq!(reader.last().value, None);
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_returns_does_not_hide_a_newer_state_or_another_object() {
    let bench = Arc::new(Bench::new().await);
    let inner = Arc::downgrade(&bench);
    let handler = move |cx: Context<ConfigMap>| {
        let bench = inner.upgrade().unwrap();
        async move {
            let Some(object) = cx.object()? else {
                return Ok(Outcome::done());
            };
            let name = cx.key().name().to_owned();
            let mut returned = ConfigMap::clone(&object);
            match &*name {
                "changed" => bench.change(&name, "newer").await,
                _ => {
                    bench.delete(&name).await;
                    bench.create(&name).await;
                    // The version of a deleted object says nothing about its successor.
                    returned.metadata.resource_version = Some("999999".into());
                }
            }
            returned
                .data
                .get_or_insert_default()
                .insert("value".into(), "returned".into());
            settle().await;
            Ok(Outcome::done().with_updated(returned))
        }
    };
    let registration = bench
        .config_maps
        .register_handler("meddles", handler)
        .unwrap();
    let reader = bench.record("reader");
    bench.start().await;
    bench.create("changed").await;
    settle().await;
    bench.create("made-again").await;
    time::sleep(SECOND).await;
    registration.deregister().await;
    let seen = |name: &str| {
        reader
            .all()
            .into_iter()
            .find(|call| call.name == name)
            .unwrap()
            .value
    };
    assert_eq!(seen("changed").as_deref(), Some("newer"));
    assert_eq!(seen("made-again").as_deref(), Some("-"));
}

#[tokio::test(start_paused = true)]
async fn an_object_returned_for_another_key_is_the_handler_s_error() {
    let bench = Bench::new().await;
    bench
        .config_maps
        .register_handler("confused", |cx: Context<ConfigMap>| async move {
            let mut object = ConfigMap::default();
            object.metadata.name = Some(format!("not-{}", cx.key().name()));
            Ok(Outcome::done().with_updated(object))
        })
        .unwrap();
    let reader = bench.record("reader");
    bench.start().await;
    bench.create("a").await;
    time::sleep(60 * SECOND).await;
    let status = bench.status();
    assert_eq!(
        (status.handlers[0].calls, status.handlers[0].failures),
        (1, 1)
    );
    assert_eq!(
        reader.last().value.as_deref(),
        Some("-"),
        "the others go on"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_fails_only_handlers_of_that_type() {
    #[derive(Debug, serde::Deserialize)]
    struct Strict {
        data: Option<std::collections::BTreeMap<String, u64>>,
    }
    let bench = Bench::new().await;
    let sums = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&sums);
    let strict = bench.config_maps.view::<Strict>();
    strict
        .register_handler("strict", move |cx: Context<Strict>| {
            let log = Arc::clone(&log);
            async move {
                let object = cx.object()?;
                let data = object
                    .and_then(|object| object.data.clone())
                    .unwrap_or_default();
                log.lock().push(format!(
                    "{} {}",
                    cx.key().name(),
                    data.values().sum::<u64>()
                ));
                Ok(Outcome::done())
            }
        })
        .unwrap();
    let lenient = bench.record("lenient");
    bench.start().await;
    bench.create("bad").await;
    bench.change("bad", "text").await;
    bench.create("good").await;
    time::sleep(600 * SECOND).await;
    assert_eq!(sums.lock().last().unwrap(), "good 0");
    assert!(lenient.names().contains(&"bad".to_owned()));
    let status = bench.status();
    assert_eq!(
        status.handlers[0].failures, 1,
        "it is not tried again until the object changes"
    );
}

#[tokio::test(start_paused = true)]
async fn handlers_that_read_one_type_share_one_decode() {
    let bench = Bench::new().await;
    let seen: Arc<Mutex<Vec<Arc<ConfigMap>>>> = Arc::default();
    for name in ["one", "two", "three"] {
        let seen = Arc::clone(&seen);
        bench
            .config_maps
            .register_handler(name, move |cx: Context<ConfigMap>| {
                seen.lock().extend(cx.object().unwrap());
                async { Ok(Outcome::done()) }
            })
            .unwrap();
    }
    bench.start().await;
    bench.create("a").await;
    settle().await;
    let seen = seen.lock();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|object| Arc::ptr_eq(object, &seen[0])));
}
