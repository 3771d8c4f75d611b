//! Snapshots: taken, restored, started from, rewound to.

use crate::bench::{Bench, CONFIG_MAPS, DEFINITIONS, text, version};
use crate::informer::{Informer, contents};
use crate::kinds::{WIDGETS, definition, widget};
use http::StatusCode;
use lariat_cluster::Cluster;
use proptest::prelude::*;
use serde_json::json;
use tokio::time::{Duration, Instant, timeout};

#[tokio::test(start_paused = true)]
async fn a_restore_is_a_stream_of_changes_to_an_open_watch() {
    let bench = Bench::new().await;
    for name in ["changed", "deleted", "kept", "recreated"] {
        bench.config_map(name, json!({})).await;
    }
    let before = contents(&bench.get(CONFIG_MAPS).await.json());
    let snapshot = bench.cluster.snapshot();
    let path = |name: &str| format!("{CONFIG_MAPS}/{name}");
    bench
        .merge(&path("changed"), json!({"data": {"a": "2"}}))
        .await;
    bench.delete(&path("deleted")).await;
    bench.delete(&path("recreated")).await;
    bench.config_map("recreated", json!({})).await;
    bench.config_map("new", json!({})).await;

    let now = version(&bench.get(CONFIG_MAPS).await.json());
    let query = format!("{CONFIG_MAPS}?watch=1&resourceVersion={now}");
    let mut watch = bench.watch(&query).await;
    bench.cluster.restore(&snapshot).await.unwrap();
    let events = [
        "MODIFIED changed",
        "ADDED deleted",
        "DELETED new",
        "DELETED recreated",
        "ADDED recreated",
    ];
    assert_eq!(watch.shorts(5).await, events);

    let after = contents(&bench.get(CONFIG_MAPS).await.json());
    assert!(after.keys().eq(before.keys()));
    for (key, mut object) in after {
        let (was, is) = (version(&before[&key]), version(&object));
        // Untouched objects keep their version; all others have one above all earlier ones.
        let kept = text(&object, "/metadata/name") == "kept";
        assert!(
            if kept { is == was } else { is > now },
            "{key}: {was}, {is}"
        );
        object["metadata"]["resourceVersion"] = before[&key]["metadata"]["resourceVersion"].clone();
        assert_eq!(object, before[&key]);
    }
    // A second restore finds nothing to do.
    let now = version(&bench.get(CONFIG_MAPS).await.json());
    bench.cluster.restore(&snapshot).await.unwrap();
    assert_eq!(version(&bench.get(CONFIG_MAPS).await.json()), now);
}

#[tokio::test(start_paused = true)]
async fn custom_kinds_are_served_as_they_were_when_a_restore_returns() {
    let bench = Bench::new().await;
    let empty = bench.cluster.snapshot();
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    bench.post(WIDGETS, &widget("a")).await;
    let snapshot = bench.cluster.snapshot();

    bench.cluster.restore(&empty).await.unwrap();
    let answer = bench.get(WIDGETS).await;
    assert_eq!(answer.code, StatusCode::NOT_FOUND);
    bench.cluster.restore(&snapshot).await.unwrap();
    assert_eq!(bench.names(WIDGETS).await, ["a"]);

    // Going away is undone as well, and what was going can be created again.
    let path = format!("{WIDGETS}/a");
    let held = json!({"metadata": {"finalizers": ["demo.dev/hold"]}});
    bench.merge(&path, held).await;
    bench
        .delete(&format!("{DEFINITIONS}/widgets.demo.dev"))
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench
        .post(WIDGETS, &widget("b"))
        .await
        .fails(403, "Forbidden");
    bench.cluster.restore(&snapshot).await.unwrap();
    assert_eq!(
        bench.post(WIDGETS, &widget("b")).await.code,
        StatusCode::CREATED
    );
    assert_eq!(bench.names(WIDGETS).await, ["a", "b"]);

    // Another specification under the same generation is not taken for the one that is served.
    bench.cluster.restore(&empty).await.unwrap();
    let mut other = definition("widgets", "Widget", "Namespaced");
    other["spec"]["versions"][1]["served"] = json!(false);
    bench.define(&other).await;
    let v2 = WIDGETS.replace("v1", "v2");
    assert_eq!(bench.get(&v2).await.code, StatusCode::NOT_FOUND);
    bench.cluster.restore(&snapshot).await.unwrap();
    assert_eq!(bench.get(&v2).await.code, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_starts_from_the_snapshot_of_another() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    bench.post(WIDGETS, &widget("a")).await;
    let before = contents(&bench.get(WIDGETS).await.json());
    let snapshot = bench.cluster.snapshot();
    bench.cluster.shutdown().await;

    let builder = Cluster::builder().seed(1).from_snapshot(&snapshot);
    let cluster = builder.start().await.unwrap();
    let bench = Bench { cluster };
    let list = bench.get(WIDGETS).await.json();
    assert_eq!(contents(&list), before);
    assert_eq!(
        text(&list, "/metadata/resourceVersion"),
        snapshot.resource_version()
    );
    assert_eq!(bench.cluster.snapshot().objects(), snapshot.objects());
    // The same seed does not lead to the same uids a second time.
    let new = bench.post(WIDGETS, &widget("b")).await.json();
    let uids = before.values().map(|object| text(object, "/metadata/uid"));
    assert!(
        uids.into_iter()
            .all(|uid| uid != text(&new, "/metadata/uid"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_restored_backup_takes_versions_back_and_cuts_watches() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    let snapshot = bench.cluster.snapshot();
    let mut watch = bench.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    assert_eq!(watch.short().await, "ADDED a");
    let newer = version(&bench.config_map("b", json!({})).await);
    bench.cluster.rewind_to(&snapshot).await.unwrap();
    // Whether it got to see the last change is chance, as on a real network.
    while let Ok(line) = watch.line().await {
        assert!(line.is_some(), "a cut is not an end");
    }

    assert_eq!(bench.names(CONFIG_MAPS).await, ["a"]);
    let start = Instant::now();
    let answer = bench
        .get(&format!("{CONFIG_MAPS}?resourceVersion={newer}"))
        .await;
    assert_eq!(start.elapsed(), Duration::from_secs(3));
    assert_eq!(answer.headers["retry-after"], "1");
    let status = answer.fails(504, "Timeout");
    assert_eq!(
        status["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );

    // A watch from the future is silent until the cluster gets there, and misses what was before.
    let query = format!("{CONFIG_MAPS}?watch=1&resourceVersion={newer}");
    let mut future = bench.watch(&query).await;
    assert_eq!(version(&bench.config_map("c", json!({})).await), newer);
    assert!(
        timeout(Duration::from_secs(60), future.line())
            .await
            .is_err()
    );
    bench.config_map("d", json!({})).await;
    assert_eq!(future.short().await, "ADDED d");
    // What was before the snapshot has expired.
    let old = format!("{CONFIG_MAPS}?resourceVersion=501&resourceVersionMatch=Exact");
    bench.get(&old).await.fails(410, "Expired");
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8),
    Delete(u8),
    Snapshot,
    Restore(u8),
    Rest,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u8..5).prop_map(Step::Put),
        3 => (0_u8..5).prop_map(Step::Delete),
        1 => Just(Step::Snapshot),
        1 => any::<u8>().prop_map(Step::Restore),
        2 => Just(Step::Rest),
    ]
}

/// Creates or changes one of a few ConfigMaps.
pub(crate) async fn put(bench: &Bench, number: u8, value: usize) {
    let name = format!("object-{number}");
    let object = json!({"metadata": {"name": name}, "data": {"value": value.to_string()}});
    if bench.post(CONFIG_MAPS, &object).await.code == StatusCode::CONFLICT {
        let changed = bench.put(&format!("{CONFIG_MAPS}/{name}"), &object).await;
        assert_eq!(changed.code, StatusCode::OK, "{}", changed.text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn an_informer_is_equal_to_a_list_whatever_is_restored(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        paused(async {
            let bench = Bench::new().await;
            let mut informer = Informer::start(&bench, CONFIG_MAPS).await;
            let mut snapshots = vec![bench.cluster.snapshot()];
            for (at, step) in steps.iter().enumerate() {
                match step {
                    Step::Put(number) => put(&bench, *number, at).await,
                    Step::Delete(number) => {
                        bench.delete(&format!("{CONFIG_MAPS}/object-{number}")).await;
                    }
                    Step::Snapshot => snapshots.push(bench.cluster.snapshot()),
                    Step::Restore(which) => {
                        let which = usize::from(*which) % snapshots.len();
                        bench.cluster.restore(&snapshots[which]).await.expect("it has no file");
                    }
                    Step::Rest => informer.check(&bench).await,
                }
            }
            informer.check(&bench).await;
        });
    }
}

/// Runs a test on paused time.
pub(crate) fn paused(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build();
    runtime.expect("a runtime starts").block_on(test);
}

#[tokio::test(start_paused = true)]
async fn a_restored_backup_serves_the_kinds_it_defines_and_no_others() {
    let bench = Bench::new().await;
    let empty = bench.cluster.snapshot();
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    bench.cluster.rewind_to(&empty).await.unwrap();
    assert_eq!(bench.get(WIDGETS).await.code, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_was_restored_keeps_its_dependents() {
    let bench = Bench::new().await;
    let owner = bench.config_map("owner", json!({})).await;
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner["metadata"]["uid"],
    });
    let metadata = json!({"name": "dependent", "ownerReferences": [reference]});
    let dependent = json!({"metadata": metadata});
    bench.post(CONFIG_MAPS, &dependent).await;
    let snapshot = bench.cluster.snapshot();
    let control = bench.cluster.control();
    control.pause_garbage_collection();
    bench.delete(&format!("{CONFIG_MAPS}/owner")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench.cluster.restore(&snapshot).await.unwrap();
    control.resume_garbage_collection();
    tokio::time::sleep(Duration::from_secs(5)).await;
    // Whatever looks at it next finds its owner.
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    bench
        .merge(&format!("{CONFIG_MAPS}/dependent"), label)
        .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(bench.names(CONFIG_MAPS).await, ["dependent", "owner"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_was_restored_is_active_and_keeps_what_it_has() {
    let bench = Bench::new().await;
    let path = "/api/v1/namespaces";
    bench
        .post(path, &json!({"metadata": {"name": "shop"}}))
        .await;
    let control = bench.cluster.control();
    control.pause_namespace_deletion();
    let snapshot = bench.cluster.snapshot();
    bench.delete(&format!("{path}/shop")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench.cluster.restore(&snapshot).await.unwrap();
    control.resume_namespace_deletion();
    let maps = format!("{path}/shop/configmaps");
    bench.post(&maps, &json!({"metadata": {"name": "a"}})).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(bench.names(&maps).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_seed_that_is_used_again_does_not_lead_to_restored_uids() {
    let bench = Bench::new().await;
    let before = bench.config_map("a", json!({})).await;
    let snapshot = bench.cluster.snapshot();
    let other = Bench::new().await;
    other.cluster.restore(&snapshot).await.unwrap();
    let after = other.config_map("b", json!({})).await;
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
}
