//! The content filter during outages, cut watches, and restored servers.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cache::{InitialList, KindOptions, Phase, SharedCacheFactory};
use lariat_core::ObjectKey;
use serde_json::json;
use tokio::time;

use crate::bench::{MINUTE, cached, config_maps, eventually, no_client};
use crate::content_filter_bench::{Filtered, SECOND, Share, both, whole};
use crate::script::{Answer, BodyEnd, Script, quiet, status};

#[tokio::test(start_paused = true)]
async fn a_load_that_fails_is_tried_again_and_the_cache_stays_readable() {
    for options in both() {
        let test = Filtered::begin(options).await;
        let (before, loads) = (test.recorder.reported(), test.loads());
        test.refuse(20 * SECOND);
        test.share.change(&["c"]);
        for _ in 0..15 {
            time::sleep(SECOND).await;
            assert_eq!(test.informer.status().phase, Phase::Synced);
            assert!(test.informer.cache::<ConfigMap>().readable().await);
            assert_eq!(test.value("a").as_deref(), Some("value of a"));
        }
        assert!(test.informer.status().last_error.is_some());
        assert!(test.informer.status().is_stale());
        time::sleep(2 * MINUTE).await;
        assert_eq!(whole(&test.informer), ["c"]);
        assert_eq!(
            (test.recorder.reported(), test.loads()),
            (before, loads + 1)
        );
        assert!(!test.informer.status().is_stale());
    }
}

/// A change comes while the watch is being opened again after a failure.
#[tokio::test(start_paused = true)]
async fn a_change_during_an_outage_is_acted_on_after_it() {
    for options in both() {
        let test = Filtered::begin(options).await;
        let loads = test.loads();
        test.refuse(20 * SECOND);
        test.cluster.cut_watches();
        time::sleep(6 * SECOND).await;
        test.share.change(&["c"]);
        for _ in 0..10 {
            time::sleep(SECOND).await;
            assert!(test.informer.status().is_stale());
        }
        time::sleep(2 * MINUTE).await;
        assert_eq!(whole(&test.informer), ["c"]);
        assert_eq!(test.loads(), loads + 1);
        assert_eq!(test.recorder.known(), test.writer.truth().await);
    }
}

/// What a server with objects `a` and `b` answers at a version; watches go on as the test says.
pub(crate) fn scripted(watch: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Script {
    Script::new(move |ask| {
        if ask.watch {
            return watch(ask.number);
        }
        let version = 10 * (ask.number + 1);
        let item = |name: &str| json!({"metadata": {"name": name, "uid": name, "resourceVersion": "5"}, "data": {"value": name}});
        let items = [item("a"), item("b")];
        let list = json!({"metadata": {"resourceVersion": version.to_string()}, "items": items});
        Answer::Whole(200, Vec::new(), list.to_string())
    })
}

#[tokio::test(start_paused = true)]
async fn watches_that_are_cut_or_expire_leave_the_filter_as_it_is() {
    let expired = || {
        let line = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
        Answer::Pieces(vec![format!("{line}\n")], BodyEnd::Clean)
    };
    let modified = |name: &str, version: u64| {
        let object = json!({"metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()}, "data": {"value": "new"}});
        format!("{}\n", json!({"type": "MODIFIED", "object": object}))
    };
    let script = scripted(move |number| match number {
        0 => Answer::Pieces(vec![modified("a", 11), modified("b", 12)], BodyEnd::Cut),
        1 => status(410, "Expired"),
        2 => expired(),
        _ => quiet(),
    });
    let share = Share::of(&["a"]);
    let factory = SharedCacheFactory::builder(no_client())
        .default_options(KindOptions::default().initial_list(InitialList::List))
        .content_filter(share.filter())
        .build();
    let informer = factory.for_source(config_maps(), Arc::new(script.clone()));
    informer.need::<ConfigMap>();
    factory.start();
    eventually(async || script.watches(), 4).await;
    assert_eq!(script.lists(), 3, "once at the start and for each expiry");
    let has_content = |name: &str| {
        let object = informer.store().get(&ObjectKey::cluster(name));
        object.map(|object| object.has_content())
    };
    assert_eq!(
        (has_content("a"), has_content("b")),
        (Some(true), Some(false))
    );
    share.change(&["b"]);
    eventually(
        async || (has_content("a"), has_content("b")),
        (Some(false), Some(true)),
    )
    .await;
    assert_eq!((script.lists(), script.watches()), (4, 5));
}

/// The object of the last event, by which the history is known again, is one that is left out.
#[tokio::test(start_paused = true)]
async fn another_history_is_noticed_by_the_metadata_of_an_object_that_is_left_out() {
    for (labels, lists) in [(json!({}), 1), (json!({"other": "history"}), 2)] {
        let newest = |labels: &serde_json::Value| {
            let metadata = json!({
                "name": "b", "uid": "b", "resourceVersion": "12", "labels": labels,
            });
            json!({"metadata": metadata, "data": {"value": "new"}})
        };
        let event = json!({"type": "MODIFIED", "object": newest(&json!({}))});
        let again = json!({"type": "MODIFIED", "object": newest(&labels)});
        let line = |event: &serde_json::Value| vec![format!("{event}\n")];
        let script = scripted(move |number| match number {
            0 => Answer::Pieces(line(&event), BodyEnd::Cut),
            1 => Answer::Pieces(line(&again), BodyEnd::Silence),
            _ => quiet(),
        });
        let script = script.forgetting();
        let share = Share::of(&["a"]);
        let factory = SharedCacheFactory::builder(no_client())
            .default_options(KindOptions::default().initial_list(InitialList::List))
            .content_filter(share.filter())
            .build();
        let informer = factory.for_source(config_maps(), Arc::new(script.clone()));
        informer.need::<ConfigMap>();
        factory.start();
        time::sleep(MINUTE).await;
        assert_eq!((script.lists(), script.watches()), (lists, lists + 1));
    }
}

/// A server takes more than a minute until it is given up.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_not_answered_does_not_delay_a_change() {
    let script = scripted(|number| match number {
        0 => Answer::Pieces(Vec::new(), BodyEnd::Cut),
        1 => Answer::Never,
        _ => quiet(),
    });
    let share = Share::of(&["a"]);
    let factory = SharedCacheFactory::builder(no_client())
        .default_options(KindOptions::default().initial_list(InitialList::List))
        .content_filter(share.filter())
        .build();
    let informer = factory.for_source(config_maps(), Arc::new(script.clone()));
    informer.need::<ConfigMap>();
    factory.start();
    eventually(async || script.watches(), 2).await;
    share.change(&["b"]);
    time::sleep(SECOND).await;
    assert_eq!((script.lists(), script.watches()), (2, 3));
    let object = informer.store().get(&ObjectKey::cluster("b"));
    assert!(object.is_some_and(|object| object.has_content()));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_restored_is_noticed_and_read_again_with_the_filter() {
    let test = Filtered::begin(KindOptions::default()).await;
    let backup = test.cluster.snapshot();
    test.writer.change("a", "lost").await;
    test.writer.change("c", "lost").await;
    eventually(async || cached(&test.informer), test.writer.truth().await).await;
    test.refuse(20 * SECOND);
    test.cluster.rewind_to(&backup).await.expect("restored");
    for number in 0..10 {
        test.writer.change("d", &number.to_string()).await;
    }
    time::sleep(2 * MINUTE).await;
    let truth = test.writer.truth().await;
    assert_eq!(
        (test.recorder.known(), cached(&test.informer)),
        (truth.clone(), truth)
    );
    assert_eq!(test.value("a").as_deref(), Some("value of a"));
    assert_eq!(whole(&test.informer), ["a", "b"]);
}

/// The newest object is one that is left out, and the server has the same history.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_away_is_not_read_again_because_of_the_filter() {
    let test = Filtered::begin(KindOptions::default()).await;
    test.writer.change("d", "newest").await;
    eventually(async || cached(&test.informer), test.writer.truth().await).await;
    let loads = test.loads();
    test.refuse(20 * SECOND);
    test.cluster.cut_watches();
    time::sleep(2 * MINUTE).await;
    assert_eq!(test.loads(), loads);
    test.writer.change("a", "new").await;
    eventually(async || test.value("a"), Some("new".to_owned())).await;
}
