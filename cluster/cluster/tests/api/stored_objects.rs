//! What is stored, read without a request.

use crate::bench::{Bench, CONFIG_MAPS, text, version};
use crate::kinds::{WIDGETS, definition, widget};
use lariat_cluster::{Commit, StoredObject};
use lariat_core::ObjectKey;
use serde_json::{Value, json};

fn keys(objects: &[StoredObject]) -> Vec<&str> {
    objects.iter().map(|object| object.key().as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn stored_objects_are_what_a_list_shows_without_a_request() {
    let bench = Bench::new().await;
    for name in ["b", "a"] {
        bench.config_map(name, json!({"app": name})).await;
    }
    bench.delete(&format!("{CONFIG_MAPS}/b")).await;
    bench.config_map("c", json!({})).await;
    let list = bench.get("/api/v1/configmaps").await.json();
    let requests = bench.cluster.journal().requests();

    let objects = bench.cluster.objects("configmaps");
    assert_eq!(keys(&objects), ["default/a", "default/c"]);
    assert_eq!(bench.cluster.revision(), version(&list));
    for (object, listed) in objects.iter().zip(list["items"].as_array().unwrap()) {
        let mut value = object.value();
        let json: Value = serde_json::from_slice(&object.json()).unwrap();
        assert_eq!(json, value);
        assert_eq!(object.resource(), "configmaps");
        assert_eq!(object.uid(), text(&value, "/metadata/uid"));
        assert_eq!(object.revision(), version(&value));
        assert!(!object.is_deleting());
        // Items of a list do not name their type.
        let members = value.as_object_mut().unwrap();
        members.retain(|name, _| name != "kind" && name != "apiVersion");
        assert_eq!(value, *listed);
    }
    assert_eq!(objects[0].labels().get("app"), Some("a"));
    let one = ObjectKey::namespaced("default", "c");
    let one = bench.cluster.object("configmaps", &one).unwrap();
    assert_eq!(one.json(), objects[1].json());
    let none = ObjectKey::namespaced("default", "b");
    assert!(bench.cluster.object("configmaps", &none).is_none());
    assert_eq!(bench.cluster.journal().requests(), requests);
    // It is not shown what may be secret.
    assert!(!format!("{:?}", objects[0]).contains("data"));
}

#[tokio::test(start_paused = true)]
async fn kinds_are_found_by_group_and_plural() {
    let bench = Bench::new().await;
    assert!(bench.cluster.objects("widgets.demo.dev").is_empty());
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    bench.post(WIDGETS, &widget("w")).await;
    assert_eq!(
        keys(&bench.cluster.objects("widgets.demo.dev")),
        ["default/w"]
    );
    assert!(bench.cluster.objects("widgets").is_empty());
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}});
    bench
        .post("/api/v1/namespaces/default/events", &event)
        .await;
    for resource in ["events", "events.events.k8s.io"] {
        assert_eq!(keys(&bench.cluster.objects(resource)), ["default/e"]);
    }
    assert!(bench.cluster.objects("events.other").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_shows_the_objects_of_its_moment() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    let snapshot = bench.cluster.snapshot();
    let before = bench.cluster.objects("configmaps");
    bench
        .merge(&format!("{CONFIG_MAPS}/a"), json!({"data": {"a": "2"}}))
        .await;
    bench.config_map("b", json!({})).await;
    let then: Vec<StoredObject> = snapshot.objects_of("configmaps").collect();
    assert_eq!(keys(&then), ["default/a"]);
    assert_eq!(then[0].value()["data"]["a"], "1");
    assert_eq!(then[0].json(), before[0].json());
    assert_eq!(snapshot.objects_of("deployments.apps").count(), 0);
    let now = bench.cluster.objects("configmaps");
    assert_eq!(now[0].value()["data"]["a"], "2");
    assert!(now[0].revision() > then[0].revision());
}

#[tokio::test(start_paused = true)]
async fn the_record_of_commits_has_every_state_in_order() {
    let bench = Bench::new().await;
    let commits = bench.cluster.commits();
    let [Commit::Reset { revision }, rest @ ..] = &commits.take()[..] else {
        panic!("what there was comes first");
    };
    assert_eq!(*revision, bench.cluster.revision());
    assert_eq!(rest.len(), bench.cluster.snapshot().objects());
    let path = format!("{CONFIG_MAPS}/a");
    bench.config_map("a", json!({})).await;
    bench.merge(&path, json!({"data": {"a": "2"}})).await;
    // What no client sees any more is there all the same.
    bench.cluster.compact();
    let backup = bench.cluster.snapshot();
    bench.delete(&path).await;
    bench
        .cluster
        .rewind_to(&backup)
        .await
        .expect("it has no file");

    let all = commits.take();
    let shown: Vec<String> = all.iter().map(shown).collect();
    let changes = [
        format!("stored default/a {}", revision + 1),
        format!("stored default/a {}", revision + 2),
        format!("removed default/a {}", revision + 3),
        format!("reset {}", revision + 2),
    ];
    assert_eq!(shown[..4], changes);
    assert_eq!(all.len(), 4 + backup.objects());
    let [_, Commit::Stored(second), Commit::Removed { last }, ..] = &all[..] else {
        panic!("{all:?}");
    };
    assert_eq!(second.value()["data"], last.value()["data"]);
    assert!(commits.take().is_empty());
}

fn shown(commit: &Commit) -> String {
    match commit {
        Commit::Stored(object) => format!("stored {} {}", object.key(), object.revision()),
        Commit::Removed { last } => format!("removed {} {}", last.key(), last.revision()),
        Commit::Reset { revision } => format!("reset {revision}"),
        other => panic!("{other:?}"),
    }
}
