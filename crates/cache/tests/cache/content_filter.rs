//! Content of some objects, metadata of all, and filters that change.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use lariat_cache::{
    ContentFilter, Informer, InitialList, KindOptions, Metadata, Phase, Query, SharedCacheFactory,
    Storage,
};
use lariat_cluster::faults::{Action, After, Rule};
use lariat_core::Gvk;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tokio::time;

use crate::bench::{MINUTE, Writer, cached, cluster, config_maps, eventually, no_client};
use crate::content_filter_bench::{Filtered, SECOND, Share, both, key, value_of, whole};
use crate::content_filter_faults::scripted;
use crate::script::{Answer, Script, quiet};

#[tokio::test(start_paused = true)]
async fn content_is_cached_of_kept_objects_and_metadata_of_all() {
    for options in both() {
        let test = Filtered::begin(options.storage(Storage::Plain)).await;
        assert_eq!(whole(&test.informer), ["a", "b"]);
        assert_eq!(cached(&test.informer), test.writer.truth().await);
        assert_eq!(test.value("a").as_deref(), Some("value of a"));
        let typed = test.informer.cache::<ConfigMap>();
        let error = typed.get(&key("c")).unwrap_err();
        assert!(error.is_no_content(), "{error}");
        let metadata = test.informer.cache::<Metadata>();
        assert!(metadata.get(&key("c")).unwrap().is_some());
        let stored = test.informer.store().get(&key("c")).unwrap();
        let json = String::from_utf8(stored.json().unwrap().into_owned()).unwrap();
        assert!(!json.contains("value of c"), "{json}");

        let before = test.informer.status().bytes;
        let large = "large ".repeat(1_000);
        test.writer.change("c", &large).await;
        test.rest().await;
        assert!(test.informer.status().bytes < before + 100);
        test.writer.change("a", &large).await;
        test.rest().await;
        assert!(test.informer.status().bytes > before + large.len() / 2);
        assert_eq!(whole(&test.informer), ["a", "b"]);
        assert_eq!(test.recorder.known(), test.writer.truth().await);
    }
}

#[tokio::test(start_paused = true)]
async fn content_of_other_objects_is_fetched_with_one_request() {
    let test = Filtered::begin(KindOptions::default()).await;
    let loaded = async |name: &str| {
        let loaded = test.informer.load(&key(name)).await.expect("loaded");
        let object = loaded.expect("it is there");
        let object = object.decode::<ConfigMap>(test.informer.gvk());
        object
            .expect("it decodes")
            .data
            .clone()
            .expect("it has data")["value"]
            .clone()
    };
    assert_eq!(loaded("a").await, "value of a");
    assert_eq!(test.count("get"), 0);
    assert_eq!(loaded("c").await, "value of c");
    assert_eq!(test.count("get"), 1);
    // The answer is on its way while this process writes.
    let late = Rule::new(Action::DelayReply(SECOND)).verb("get");
    test.cluster.faults().add(late.times(1));
    let own = async {
        time::sleep(SECOND / 2).await;
        Writer::new(test.factory.clients().client())
            .change("c", "new")
            .await;
    };
    let (value, ()) = tokio::join!(loaded("c"), own);
    assert_eq!((value.as_str(), test.count("get")), ("new", 3));
}

#[tokio::test(start_paused = true)]
async fn content_that_no_list_brings_is_not_waited_for() {
    let test = Filtered::begin(KindOptions::default()).await;
    test.factory.stop().await;
    let late = Rule::new(Action::DelayReply(10 * SECOND)).verb("watch");
    test.cluster.faults().add(late.times(1));
    test.factory.start();
    time::sleep(SECOND).await;
    assert_ne!(test.informer.status().phase, Phase::Synced);
    let began = time::Instant::now();
    assert!(test.informer.load(&key("c")).await.unwrap().is_some());
    assert!(began.elapsed() < SECOND, "in virtual time");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_filter_reads_everything_once_and_publishes_nothing() {
    for (options, streams) in both().into_iter().zip([false, true]) {
        let test = Filtered::begin(options).await;
        let (before, loads) = (test.recorder.reported(), test.loads());
        test.share.change(&["b", "c"]);
        test.has_content_of(&["b", "c"]).await;
        test.rest().await;
        assert_eq!(test.loads(), loads + 1);
        // With a stream, the watch that reads everything is the one that goes on.
        assert_eq!(
            (test.count("list"), test.count("watch")),
            (usize::from(!streams), 1)
        );
        assert_eq!(test.count("get"), 0, "the server is not doubted");
        assert_eq!(test.recorder.reported(), before);
        assert_eq!(test.value("c").as_deref(), Some("value of c"));
        assert_eq!(test.value("a"), None);
        assert_eq!(test.informer.status().phase, Phase::Synced);
        // The watch goes on.
        test.writer.change("c", "new").await;
        test.writer.change("a", "new").await;
        eventually(async || test.recorder.known(), test.writer.truth().await).await;
        assert_eq!(whole(&test.informer), ["b", "c"]);
        assert_eq!(test.value("c").as_deref(), Some("new"));
        assert_eq!(test.loads(), loads + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_during_a_load_cause_one_further_load() {
    for options in both() {
        let test = Filtered::begin(options).await;
        let loads = test.loads();
        let late = Action::DelayReply(10 * SECOND);
        test.cluster
            .faults()
            .add(Rule::new(late).client("informer").times(1));
        test.share.change(&["c"]);
        time::sleep(SECOND).await;
        for names in [&["d"][..], &["a", "d"], &["a"]] {
            test.share.change(names);
            time::sleep(SECOND).await;
        }
        assert_eq!(test.loads(), loads, "the first is under way");
        assert_eq!(test.informer.status().phase, Phase::Synced);
        time::sleep(MINUTE).await;
        assert_eq!(test.loads(), loads + 2);
        assert_eq!(whole(&test.informer), ["a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_before_and_during_the_first_load_cost_one_further_load_at_most() {
    for options in both() {
        let test = Filtered::begin(options).await;
        test.factory.stop().await;
        let loads = test.loads();
        test.share.change(&["c"]);
        test.share.change(&["d"]);
        test.factory.start();
        assert!(test.informer.synced().await);
        test.rest().await;
        assert_eq!(test.loads(), loads + 1);
        test.has_content_of(&["d"]).await;

        test.factory.stop().await;
        let late = Action::DelayReply(10 * SECOND);
        test.cluster
            .faults()
            .add(Rule::new(late).client("informer").times(1));
        test.factory.start();
        time::sleep(SECOND).await;
        test.share.change(&["a"]);
        test.share.change(&["a", "b"]);
        time::sleep(MINUTE).await;
        assert_eq!(test.loads(), loads + 3);
        test.has_content_of(&["a", "b"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_of_which_metadata_is_enough_reads_nothing_again() {
    for storage in [Storage::Auto, Storage::OnDemand] {
        let cluster = cluster().await;
        let writer = Writer::new(cluster.client());
        writer.create("a").await;
        let share = Share::of(&[]);
        let factory = SharedCacheFactory::builder(cluster.client())
            .default_options(KindOptions::default().storage(storage))
            .content_filter(share.filter())
            .build();
        let informer = factory.for_kind(config_maps());
        if storage == Storage::OnDemand {
            informer.need::<ConfigMap>();
        }
        factory.start();
        factory.wait_for_sync(MINUTE).await.expect("synced");
        share.change(&["a"]);
        time::sleep(5 * SECOND).await;
        assert_eq!(informer.status().loads, 1);
        assert_eq!(cluster.journal().count("watch", "configmaps"), 1);
        assert_eq!(whole(&informer), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_gets_and_loses_content_by_a_change_of_its_own() {
    let test = Filtered::begin(KindOptions::default()).await;
    let typed = test.informer.cache::<ConfigMap>();
    typed.add_index("value", value_of).unwrap();
    let found = |value: &str| typed.by_index("value", value).unwrap().count();
    assert_eq!((found("value of a"), found("value of c")), (1, 0));
    let loads = test.loads();
    // By the watch, and by the answer to a write of this process.
    for client in [test.cluster.client(), test.factory.clients().client()] {
        let api: Api<ConfigMap> = Api::namespaced(client, "default");
        let label = async |label| {
            let patch = Patch::Merge(json!({"metadata": {"labels": {"mine": label}}}));
            let patched = api.patch("c", &PatchParams::default(), &patch).await;
            patched.expect("patched");
            eventually(async || test.recorder.known(), test.writer.truth().await).await;
        };
        label(Some("yes")).await;
        assert_eq!(whole(&test.informer), ["a", "b", "c"]);
        assert_eq!(
            (test.value("c").as_deref(), found("value of c")),
            (Some("value of c"), 1)
        );
        let mine = Query::all().labels("mine=yes".parse().unwrap());
        assert_eq!(typed.count(&mine), 1);
        label(None).await;
        assert_eq!(whole(&test.informer), ["a", "b"]);
        assert_eq!((test.value("c"), found("value of c")), (None, 0));
    }
    assert_eq!((test.loads(), test.count("get")), (loads, 0));
}

#[tokio::test(start_paused = true)]
async fn indexes_find_gained_objects_and_lost_ones_until_they_change() {
    let test = Filtered::begin(KindOptions::default()).await;
    let typed = test.informer.cache::<ConfigMap>();
    typed.add_index("value", value_of).unwrap();
    let found = |value: &str| typed.count_by_index("value", value).unwrap();
    test.share.change(&["c"]);
    test.has_content_of(&["c"]).await;
    assert_eq!((found("value of a"), found("value of c")), (1, 1));
    test.writer.change("a", "new").await;
    eventually(async || test.recorder.known(), test.writer.truth().await).await;
    assert_eq!((found("value of a"), found("new")), (0, 0));
}

/// Writes of this process are applied as metadata immediately, whatever their answers contain.
#[tokio::test(start_paused = true)]
async fn an_own_write_of_a_left_out_object_shows_its_metadata_immediately() {
    let test = Filtered::begin(KindOptions::default()).await;
    // The watch shows nothing.
    let hung = Rule::new(Action::HangWatch(After::Time(SECOND))).client("informer");
    let hung = test.cluster.faults().add(hung);
    test.cluster.cut_watches();
    test.rest().await;
    let own = test.factory.clients().client();
    let shown = |name: &str| cached(&test.informer)[name].clone();
    Writer::new(own.clone()).change("c", "new").await;
    assert_eq!(shown("c"), test.writer.truth().await["c"]);
    let metadata: Api<kube::core::PartialObjectMeta<ConfigMap>> = Api::namespaced(own, "default");
    for name in ["c", "a"] {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"some": "label"}}}));
        let patched = metadata
            .patch_metadata(name, &PatchParams::default(), &patch)
            .await;
        patched.expect("patched");
        if name == "c" {
            assert_eq!(shown("c"), test.writer.truth().await["c"]);
        }
    }
    assert_ne!(
        shown("a"),
        test.writer.truth().await["a"],
        "its content was not in the answer"
    );
    assert_eq!(whole(&test.informer), ["a", "b"]);
    test.cluster.faults().remove(hung);
    test.cluster.cut_watches();
    eventually(async || test.recorder.known(), test.writer.truth().await).await;
    assert_eq!(whole(&test.informer), ["a", "b"]);
    assert_eq!(test.value("a").as_deref(), Some("value of a"));
}

#[tokio::test(start_paused = true)]
async fn the_predicate_decides_kind_by_kind() {
    let share = Share::of(&["a"]);
    let factory = SharedCacheFactory::builder(no_client())
        .default_options(KindOptions::default().initial_list(InitialList::List))
        .content_filter(share.filter())
        .build();
    let script = scripted(|_| quiet());
    let maps = factory.for_source(config_maps(), Arc::new(script.clone()));
    let secrets = factory.for_source(
        Gvk::new("", "v1", "Secret"),
        Arc::new(scripted(|_| quiet())),
    );
    maps.need::<ConfigMap>();
    secrets.need::<ConfigMap>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let has_content = |informer: &Informer| {
        let snapshot = informer.store().snapshot();
        snapshot
            .iter()
            .map(|object| object.has_content())
            .collect::<Vec<_>>()
    };
    assert_eq!(has_content(&maps), [true, false]);
    assert_eq!(has_content(&secrets), [true, true]);
}

/// A server with 300 objects of about two kilobytes.
fn large() -> Script {
    let filling = |number: usize| -> String {
        let part = |part| format!("value {} of {part}; ", number * 31);
        (0..40).map(part).collect()
    };
    Script::new(move |ask| {
        let item = |number: usize| {
            let metadata = json!({"name": format!("o{number}"), "resourceVersion": "1"});
            let data = json!({"key": filling(number), "number": number.to_string()});
            let data = (!ask.metadata_only).then_some(data);
            json!({"metadata": metadata, "data": data})
        };
        let items: Vec<_> = (0..300).map(item).collect();
        let list = json!({"metadata": {"resourceVersion": "1"}, "items": items}).to_string();
        if ask.watch {
            quiet()
        } else {
            Answer::Whole(200, Vec::new(), list)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_kind_steps_down_for_its_budget_with_a_filter_as_without() {
    let (share, changed) = (Arc::new(Mutex::new(1)), watch::Sender::new(0));
    let kept_of = Arc::clone(&share);
    let filter = ContentFilter::new(changed.subscribe(), move |_, object| {
        let number: usize = object.key().name()[1..].parse().expect("a number");
        number % 3 < *kept_of.lock()
    });
    let begin = async |budget: usize| {
        let options = KindOptions::default()
            .initial_list(InitialList::List)
            .storage(Storage::Plain);
        let factory = SharedCacheFactory::builder(no_client())
            .default_options(options.memory_budget(budget))
            .content_filter(filter.clone())
            .build();
        let informer = factory.for_source(config_maps(), Arc::new(large()));
        informer.need::<ConfigMap>();
        factory.start();
        factory.wait_for_sync(MINUTE).await.expect("synced");
        (factory, informer)
    };
    let whole = |informer: &Informer| {
        let snapshot = informer.store().snapshot();
        snapshot
            .iter()
            .filter(|object| object.has_content())
            .count()
    };
    let (_factory, informer) = begin(usize::MAX).await;
    let held = informer.status().bytes;
    assert_eq!(
        (whole(&informer), informer.status().storage),
        (100, Storage::Plain)
    );
    let (_factory, informer) = begin(held * 3 / 4).await;
    assert_eq!(
        (whole(&informer), informer.status().storage),
        (100, Storage::Compressed)
    );
    assert!(informer.status().bytes < held * 3 / 4);
    // The share grows beyond the budget.
    let (_factory, informer) = begin(held + held / 2).await;
    assert_eq!(informer.status().storage, Storage::Plain);
    *share.lock() = 3;
    changed.send_replace(1);
    eventually(async || informer.status().storage, Storage::Compressed).await;
    eventually(async || whole(&informer), 300).await;
    let (_factory, informer) = begin(held / 10).await;
    eventually(async || informer.status().storage, Storage::OnDemand).await;
    eventually(async || whole(&informer), 0).await;
    assert_eq!(informer.status().objects, 300);
    let loads = informer.status().loads;
    changed.send_replace(2);
    time::sleep(5 * SECOND).await;
    assert_eq!(informer.status().loads, loads);
}
