//! Keeping to an amount of memory.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cache::{Informer, KindOptions, SharedCacheFactory, Storage};
use lariat_core::{Gvk, ObjectKey};
use serde_json::json;
use tokio::time;

use crate::bench::{MINUTE, config_maps, eventually, no_client};
use crate::relists::slow_list;
use crate::script::{Answer, Script, quiet, status};

/// A kind with objects of about two kilobytes.
fn large(objects: usize) -> Script {
    let filling = |number: usize| {
        let part = |part| format!("value {} of {part}; ", number * 31);
        (0..40).map(part).collect()
    };
    kind(objects, filling, false)
}

/// A kind with objects that are hard to compress, of which metadata alone may be forbidden.
fn noisy(objects: usize, refuses_metadata: bool) -> Script {
    let filling = |number: usize| {
        let mut random = fastrand::Rng::with_seed(number as u64);
        (0..60).map(|_| format!("{:x}", random.u64(..))).collect()
    };
    kind(objects, filling, refuses_metadata)
}

fn kind(objects: usize, filling: fn(usize) -> String, refuses_metadata: bool) -> Script {
    Script::new(move |ask| {
        if ask.watch {
            return quiet();
        }
        if ask.metadata_only && refuses_metadata {
            return status(403, "Forbidden");
        }
        let item = |number: usize| {
            let metadata = json!({"name": format!("o{number}"), "resourceVersion": "1"});
            let data = json!({"key": filling(number), "number": number.to_string()});
            let data = (!ask.metadata_only).then_some(data);
            json!({"metadata": metadata, "data": data})
        };
        let items: Vec<_> = (0..objects).map(item).collect();
        let text = json!({"metadata": {"resourceVersion": "1"}, "items": items}).to_string();
        Answer::Whole(200, Vec::new(), text)
    })
}

fn factory(options: KindOptions, all: Option<usize>) -> SharedCacheFactory {
    let options = options.initial_list(lariat_cache::InitialList::List);
    let builder = SharedCacheFactory::builder(no_client()).default_options(options);
    match all {
        Some(bytes) => builder.memory_budget(bytes).build(),
        None => builder.build(),
    }
}

async fn started(options: KindOptions, objects: usize) -> (SharedCacheFactory, Informer) {
    let factory = factory(options, None);
    let informer = factory.for_source(config_maps(), Arc::new(large(objects)));
    informer.need::<ConfigMap>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("synced");
    (factory, informer)
}

#[tokio::test(start_paused = true)]
async fn a_kind_steps_down_as_far_as_its_budget_asks() {
    let plain = KindOptions::default().storage(Storage::Plain);
    let (_factory, informer) = started(plain.clone(), 300).await;
    let held = informer.status().bytes;
    assert_eq!(informer.status().storage, Storage::Plain);
    for (budget, expected) in [
        (2 * held, Storage::Plain),
        (held * 2 / 3, Storage::Compressed),
        (held / 10, Storage::OnDemand),
        (0, Storage::OnDemand),
    ] {
        let (factory, informer) = started(plain.clone().memory_budget(budget), 300).await;
        eventually(async || informer.status().storage, expected).await;
        factory.wait_for_sync(MINUTE).await.unwrap();
        assert_eq!(
            informer.status().objects,
            300,
            "nothing but content is given up"
        );
        let readable = informer.cache::<ConfigMap>().get(&ObjectKey::cluster("o7"));
        assert_eq!(readable.is_ok(), expected != Storage::OnDemand);
    }
}

#[tokio::test(start_paused = true)]
async fn decoded_values_are_given_up_first() {
    let decoded = KindOptions::default().storage(Storage::Decoded);
    let (_factory, informer) = started(decoded.clone(), 300).await;
    let held = informer.status().bytes;
    let (_factory, informer) = started(decoded.memory_budget(held * 2), 300).await;
    assert_eq!(informer.status().storage, Storage::Plain);
}

#[tokio::test(start_paused = true)]
async fn of_all_kinds_the_largest_steps_down() {
    let plain = KindOptions::default().storage(Storage::Plain);
    let (_factory, small) = started(plain.clone(), 50).await;
    let unit = small.status().bytes;
    let factory = factory(plain, Some(unit * 4));
    let small = factory.for_source(config_maps(), Arc::new(large(50)));
    let big = factory.for_source(Gvk::new("", "v1", "Secret"), Arc::new(large(200)));
    small.need::<ConfigMap>();
    big.need::<ConfigMap>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    assert_eq!(small.status().storage, Storage::Plain);
    assert_eq!(big.status().storage, Storage::Compressed);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_read_again_steps_down_and_others_do_after_it() {
    let compressed = KindOptions::default().storage(Storage::Compressed);
    let limit = 200_000;
    let factory = factory(compressed, Some(limit));
    let secrets = Gvk::new("", "v1", "Secret");
    let stuck = factory.for_source(secrets, Arc::new(noisy(400, true)));
    stuck.need::<ConfigMap>();
    factory.start();
    eventually(async || stuck.status().storage, Storage::OnDemand).await;
    let held = stuck.status().bytes;
    assert!(held <= limit, "{held}: the content is gone without a list");
    let other = factory.for_source(config_maps(), Arc::new(noisy(400, false)));
    other.need::<ConfigMap>();
    eventually(async || other.status().storage, Storage::OnDemand).await;
    let error = stuck.status().last_error.expect("it cannot be read");
    assert!(error.contains("403"), "{error}");
    assert_eq!(stuck.status().objects, 400);
}

#[tokio::test(start_paused = true)]
async fn content_hold_keeps_kind_compressed_beyond_memory_budget() {
    let plain = KindOptions::default().storage(Storage::Plain);
    let factory = factory(plain.memory_budget(0), None);
    let informer = factory.for_source(config_maps(), Arc::new(large(300)));
    let [one, other] = [informer.hold_content(), informer.hold_content()];
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let stored = || (informer.status().storage, informer.status().holds_content);
    let content = |name: &str| informer.cache::<ConfigMap>().get(&ObjectKey::cluster(name));
    assert_eq!(stored(), (Storage::Compressed, true));
    drop(one);
    assert!(informer.relist());
    eventually(async || informer.status().loads, 2).await;
    assert_eq!(
        stored(),
        (Storage::Compressed, true),
        "of two holds one is left"
    );
    drop(other);
    assert!(informer.relist());
    eventually(async || stored(), (Storage::OnDemand, false)).await;
    assert!(content("o7").is_err());
    for _ in 0..2 {
        let again = informer.hold_content();
        assert!(informer.synced().await, "metadata is current meanwhile");
        assert!(informer.is_upgrading() && content("o7").is_err());
        assert!(informer.content_synced().await);
        assert!(content("o7").unwrap().is_some());
        assert_eq!(stored(), (Storage::Compressed, true));
        drop(again);
        assert!(informer.relist());
        eventually(async || stored(), (Storage::OnDemand, false)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn content_hold_compresses_on_demand_kind() {
    let on_demand = KindOptions::default().storage(Storage::OnDemand);
    let (_factory, informer) = started(on_demand, 300).await;
    let content = || informer.cache::<ConfigMap>().get(&ObjectKey::cluster("o7"));
    assert!(content().is_err());
    let hold = informer.hold_content();
    assert!(informer.content_synced().await);
    assert!(content().unwrap().is_some());
    assert_eq!(informer.status().storage, Storage::Compressed);
    drop(hold);
    assert_eq!(informer.status().storage, Storage::OnDemand);
    assert!(content().is_err(), "its memory is free at once");
}

#[tokio::test(start_paused = true)]
async fn index_finds_objects_by_content_of_a_kind_on_demand() {
    let on_demand = KindOptions::default().storage(Storage::OnDemand);
    let (_factory, informer) = started(on_demand, 30).await;
    let cache = informer.cache::<ConfigMap>();
    let number = |object: &ConfigMap| {
        let data = object.data.iter().flatten();
        data.filter(|(name, _)| *name == "number")
            .map(|(_, number)| number.clone())
            .collect()
    };
    cache.add_index("number", number).unwrap();
    assert!(informer.content_synced().await);
    assert_eq!(cache.count_by_index("number", "7").unwrap(), 1);
    assert!(informer.status().holds_content);
}

#[tokio::test(start_paused = true)]
async fn factory_budget_passes_over_a_kind_whose_content_is_held() {
    let compressed = KindOptions::default().storage(Storage::Compressed);
    let factory = factory(compressed, Some(100_000));
    let secrets = Gvk::new("", "v1", "Secret");
    let large = factory.for_source(secrets, Arc::new(noisy(400, false)));
    let small = factory.for_source(config_maps(), Arc::new(noisy(40, false)));
    let hold = large.hold_content();
    small.need::<ConfigMap>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    assert!(large.relist());
    eventually(async || small.status().storage, Storage::OnDemand).await;
    assert_eq!(large.status().storage, Storage::Compressed);
    drop(hold);
    assert!(large.relist());
    eventually(async || large.status().storage, Storage::OnDemand).await;
}

/// A writer locked `wanted` and waited for the lock of the phase, and readers took the two in the other order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn phase_is_read_while_content_upgrade_begins() {
    let on_demand = KindOptions::default().storage(Storage::OnDemand);
    let (_factory, informer) = started(on_demand, 3).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let reader = informer.clone();
        tasks.spawn(async move {
            for _ in 0..20_000 {
                let _ = (reader.is_upgrading(), reader.upgrading_for());
                let cache = reader.cache::<ConfigMap>();
                let _ = cache.readable_within(std::time::Duration::ZERO).await;
            }
        });
    }
    let writer = informer.clone();
    tasks.spawn(async move {
        for _ in 0..2_000 {
            drop(writer.hold_content());
            writer.select(lariat_cache::Selection::all().in_namespaces(["a"]));
            writer.select(lariat_cache::Selection::all());
        }
    });
    let ended = tokio::time::timeout(MINUTE, tasks.join_all()).await;
    assert!(ended.is_ok(), "they wait for each other");
}

#[tokio::test(start_paused = true)]
async fn hold_that_replaces_another_at_once_keeps_the_content() {
    let on_demand = KindOptions::default().storage(Storage::OnDemand);
    let (_factory, informer) = started(on_demand, 300).await;
    let hold = informer.hold_content();
    assert!(informer.content_synced().await);
    // Without an await in between, so that the informer sees the same form as before.
    drop(hold);
    let _again = informer.hold_content();
    let synced = time::timeout(MINUTE, informer.content_synced()).await;
    assert_eq!(synced, Ok(true));
    let object = informer.cache::<ConfigMap>().get(&ObjectKey::cluster("o7"));
    assert!(object.expect("it can be decoded").is_some());
}

#[tokio::test(start_paused = true)]
async fn hold_that_ends_at_once_keeps_no_kind_from_syncing() {
    let options = KindOptions::default().storage(Storage::OnDemand);
    let factory = factory(options, None);
    let script = Script::new(|ask| {
        if ask.watch {
            quiet()
        } else {
            slow_list(10, &["a"])
        }
    });
    let informer = factory.for_source(config_maps(), Arc::new(script));
    informer.need::<ConfigMap>();
    factory.start();
    // The first list is read.
    time::sleep(Duration::from_secs(1)).await;
    drop(informer.hold_content());
    assert_eq!(time::timeout(MINUTE, informer.synced()).await, Ok(true));
}
