//! The store against a naive reference, and rule by rule.

mod filter;
mod model;
mod own_writes;
mod own_writes_forgotten;
mod packing;
mod queries;
mod transitions;

use std::sync::Arc;

use lariat_core::{Gvk, ObjectKey, RawObject, ResourceVersion};
use serde_json::json;

use super::*;
use crate::selection::Selection;

/// Which object and which of its states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TestState {
    uid: u8,
    version: u64,
}

fn gvk() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

/// Makes an object whose labels and owner change from state to state.
fn object(key: u8, state: TestState) -> RawObject {
    let namespace = ["a", "a-b", "b"][usize::from(key) % 3];
    let mut metadata = json!({
        "name": format!("o{key}"), "namespace": namespace,
        "uid": format!("u{}", state.uid), "resourceVersion": state.version.to_string(),
    });
    if !state.version.is_multiple_of(4) {
        metadata["labels"] = json!({"tier": format!("t{}", state.version % 3), "app": "x"});
    }
    if !state.version.is_multiple_of(5) {
        metadata["ownerReferences"] = json!([{"uid": format!("owner{}", state.version % 2)}]);
    }
    let json = json!({"metadata": metadata, "data": {"filling": "x".repeat(200)}});
    RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap()
}

fn changes(store: &Store, deltas: Vec<Delta>) -> Vec<String> {
    let text = |change: &Change| match change {
        Change::Added { object, .. } => format!("added {}", object.version()),
        Change::Updated { old, new } => format!("updated {} {}", old.version(), new.version()),
        Change::Deleted { last } => format!("deleted {}", last.version()),
        Change::Resynced { .. } => "resynced".to_owned(),
    };
    let reported = store.apply(deltas, Content::Whole);
    reported.iter().map(text).collect()
}

#[test]
fn replayed_events_change_nothing() {
    let store = Store::default();
    let present = |version| Delta::Present(object(0, TestState { uid: 1, version }));
    assert_eq!(
        changes(&store, vec![present(1), present(2)]),
        ["added 1", "updated 1 2"]
    );
    assert_eq!(
        changes(&store, vec![present(1), present(2)]),
        Vec::<String>::new()
    );
    let gone = |version| Delta::Deleted(object(0, TestState { uid: 1, version }));
    assert_eq!(changes(&store, vec![gone(3), gone(3)]), ["deleted 3"]);
}

#[test]
fn another_object_under_the_same_name_is_a_deletion_and_an_addition() {
    let store = Store::default();
    let present = |uid, version| Delta::Present(object(0, TestState { uid, version }));
    changes(&store, vec![present(1, 1)]);
    assert_eq!(
        changes(&store, vec![present(2, 5)]),
        ["deleted 1", "added 5"]
    );
    let late = Delta::Deleted(object(0, TestState { uid: 1, version: 4 }));
    assert_eq!(
        changes(&store, vec![late]),
        Vec::<String>::new(),
        "the successor stays"
    );
}

#[test]
fn the_state_of_a_server_restored_from_a_backup_is_used() {
    let store = Store::default();
    changes(
        &store,
        vec![Delta::Present(object(
            0,
            TestState {
                uid: 1,
                version: 900,
            },
        ))],
    );
    let listing = store.begin_listing(false, Content::Whole, None);
    let reported = store.list_page(&listing, vec![object(0, TestState { uid: 1, version: 7 })]);
    assert!(matches!(&reported[..], [Change::Updated { .. }]));
}

#[derive(Debug, serde::Deserialize)]
struct Sized {
    spec: Spec,
}

#[derive(Debug, serde::Deserialize)]
struct Spec {
    size: u16,
}

fn raw(json: &serde_json::Value) -> Arc<CachedObject> {
    Arc::new(CachedObject::new(
        RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap(),
    ))
}

#[test]
fn a_value_is_decoded_once_while_it_is_in_use() {
    let object = raw(&json!({"metadata": {"name": "a"}, "spec": {"size": 5}}));
    let first = object.decode::<Sized>(&gvk()).unwrap();
    let second = object.decode::<Sized>(&gvk()).unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(first.spec.size, 5);
    let other = object.decode::<serde_json::Value>(&gvk()).unwrap();
    assert_eq!(other["kind"], "ConfigMap");
    let weak = Arc::downgrade(&first);
    drop((first, second));
    assert!(
        weak.upgrade().is_none(),
        "the cache itself keeps nothing decoded"
    );
    assert_eq!(object.decode::<Sized>(&gvk()).unwrap().spec.size, 5);
}

#[test]
fn a_decode_error_names_kind_key_and_field_but_no_value() {
    let secret = json!({"metadata": {"name": "a", "namespace": "n"}, "spec": {"size": "hunter2"}});
    let error = raw(&secret)
        .decode::<Sized>(&gvk())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("v1 ConfigMap n/a cannot be decoded: invalid type: string"),
        "{error}"
    );
    assert!(error.ends_with("(at spec.size)"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn content_that_arrives_later_takes_the_place_of_metadata_without_a_change() {
    let store = Store::default();
    let state = || object(0, TestState { uid: 1, version: 1 });
    store.apply(vec![Delta::Present(state())], Content::MetadataOnly);
    let partial = store.get(state().key()).unwrap();
    assert!(
        partial
            .decode::<serde_json::Value>(&gvk())
            .unwrap_err()
            .is_no_content()
    );
    let listing = store.begin_listing(false, Content::Whole, None);
    assert!(store.list_page(&listing, vec![state()]).is_empty());
    assert!(store.end_listing(&listing, &1.into()).is_empty());
    let whole = store.get(state().key()).unwrap();
    assert!(whole.has_content() && whole.decode::<serde_json::Value>(&gvk()).is_ok());
    assert!(store.snapshot().get(state().key()).unwrap().has_content());
}

#[test]
fn a_kind_that_grows_is_compressed_and_reads_the_same() {
    let store = Store::default();
    let listing = store.begin_listing(true, Content::Whole, None);
    let page = |from: u16| {
        (from..from + 500).map(|number| {
            let json = json!({"metadata": {"name": format!("o{number}"), "uid": format!("u{number}"),
                "resourceVersion": "1"}, "data": {"filling": "abc".repeat(1000)}});
            RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap()
        })
    };
    store.list_page(&listing, page(0).collect());
    store.train();
    let before_packing = 500 * 3000;
    assert!(store.bytes() < before_packing / 4, "{}", store.bytes());
    store.list_page(&listing, page(500).collect());
    assert!(store.end_listing(&listing, &1.into()).is_empty());
    assert_eq!(store.len(), 1000);
    let snapshot = store.snapshot();
    assert_eq!(
        store.bytes(),
        snapshot.iter().map(|object| object.bytes()).sum::<usize>()
    );
    for object in snapshot.iter() {
        let value = object.decode::<serde_json::Value>(&gvk()).unwrap();
        assert_eq!(value["metadata"]["name"], object.key().name());
        assert_eq!(value["data"]["filling"].as_str().map(str::len), Some(3000));
    }
}

#[test]
fn kinds_that_are_kept_decoded_keep_values_until_they_step_down() {
    let store = Store::default();
    store.set_storage(Storage::Decoded);
    store.apply(
        vec![Delta::Present(object(0, TestState { uid: 1, version: 1 }))],
        Content::Whole,
    );
    let key = object(0, TestState { uid: 1, version: 1 }).key().clone();
    let value = store
        .get(&key)
        .unwrap()
        .decode::<serde_json::Value>(&gvk())
        .unwrap();
    let weak = Arc::downgrade(&value);
    drop(value);
    assert!(weak.upgrade().is_some());
    assert_eq!(store.retained(), 1);
    store.set_storage(Storage::Plain);
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let store = Store::default();
    let state = |key, version| Delta::Present(object(key, TestState { uid: key, version }));
    store.apply((0..200).map(|key| state(key, 1)).collect(), Content::Whole);
    let before = store.snapshot();
    store.apply((0..200).map(|key| state(key, 2)).collect(), Content::Whole);
    store.restrict(&Selection::all().in_namespaces(["a"]));
    assert_eq!(before.len(), 200);
    assert!(before.iter().all(|object| *object.version() == 1.into()));
    assert_eq!(store.snapshot().len(), 67);
}

#[test]
fn objects_without_versions_are_always_news() {
    let store = Store::default();
    let json = json!({"metadata": {"name": "a", "uid": "u"}});
    let state = || RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap();
    changes(&store, vec![Delta::Present(state())]);
    assert_eq!(
        changes(&store, vec![Delta::Present(state())]),
        ["updated  "]
    );
}

#[test]
fn an_index_of_content_finds_objects_once_their_content_is_here() {
    let store = Store::default();
    let by_filling = |object: &Arc<CachedObject>| {
        let value = object.decode::<serde_json::Value>(&gvk());
        value.map_or(Vec::new(), |value| {
            vec![value["data"]["filling"].to_string()]
        })
    };
    let state = || object(0, TestState { uid: 1, version: 1 });
    store.apply(vec![Delta::Present(state())], Content::MetadataOnly);
    store
        .add_index(&gvk(), "filling", Arc::new(by_filling))
        .unwrap();
    let filling = format!("{:?}", "x".repeat(200));
    let count = || store.count_by_index(&gvk(), "filling", &filling).unwrap();
    assert_eq!(count(), 0);
    let listing = store.begin_listing(false, Content::Whole, None);
    store.list_page(&listing, vec![state()]);
    assert_eq!(count(), 1);
    let listing = store.begin_listing(false, Content::MetadataOnly, None);
    store.list_page(&listing, vec![state()]);
    assert_eq!(
        count(),
        1,
        "content that is given up is not forgotten by indexes"
    );
    assert!(!store.get(state().key()).unwrap().has_content());
}

#[test]
fn the_memory_of_decoded_values_is_given_up_as_others_are_decoded() {
    let objects: Vec<_> = (0..200)
        .map(|number| raw(&json!({"metadata": {"name": format!("o{number}")}})))
        .collect();
    let held = objects[0].decode::<serde_json::Value>(&gvk()).unwrap();
    for object in &objects[1..] {
        object.decode::<serde_json::Value>(&gvk()).unwrap();
    }
    let with_links = objects.iter().filter(|object| object.remembers()).count();
    assert_eq!(
        with_links,
        64 + 1,
        "the last few, and the one that is in use"
    );
    drop(held);
}

/// An object with or without content, which has more in common with its like than with the other.
fn pod(number: u32, whole: bool) -> RawObject {
    let spread = |number: u32| format!("{:x}", number.wrapping_mul(2_654_435_761));
    let mut json = json!({"metadata": {
        "name": format!("o{number}"), "uid": format!("u{number}"), "resourceVersion": "1",
        "annotations": {"a": spread(number), "filling": "m".repeat(300)},
    }});
    let container = |each: u32| {
        json!({
            "name": format!("container-{each}"),
            "image": format!("registry.example.com/team/app-{each}:{}", number % 7),
            "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "ID", "value": spread(number + each)}],
            "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}},
            "terminationMessagePath": "/dev/termination-log", "imagePullPolicy": "IfNotPresent",
        })
    };
    if whole {
        let containers: Vec<_> = (0..12).map(container).collect();
        json["spec"] = json!({"containers": containers, "restartPolicy": "Always"});
    }
    RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap()
}

fn fill(store: &Store, content: Content) {
    let listing = store.begin_listing(true, content, None);
    for page in 0..8 {
        let page = (page * 250..(page + 1) * 250).map(|n| pod(n, content == Content::Whole));
        store.list_page(&listing, page.collect());
        store.train();
    }
    store.end_listing(&listing, &1.into());
}

#[test]
fn content_that_takes_the_place_of_metadata_is_packed_as_well_as_if_it_had_come_first() {
    let (first, later) = (Store::default(), Store::default());
    for store in [&first, &later] {
        store.set_storage(Storage::Compressed);
    }
    fill(&first, Content::Whole);
    fill(&later, Content::MetadataOnly);
    fill(&later, Content::Whole);
    let (first, later) = (first.bytes(), later.bytes());
    assert!(later < first * 9 / 8, "{later} instead of {first}");
}

#[test]
fn content_that_is_given_up_is_freed_immediately_and_later_content_too() {
    let store = Store::default();
    store.set_storage(Storage::Plain);
    fill(&store, Content::Whole);
    let held = store.bytes();
    store.set_storage(Storage::OnDemand);
    assert!(store.bytes() < held / 2, "{} of {held}", store.bytes());
    let listing = store.begin_listing(false, Content::Whole, None);
    store.list_page(&listing, vec![pod(5000, true)]);
    store.apply(vec![Delta::Present(pod(5001, true))], Content::Whole);
    assert_eq!(store.len(), 2002);
    let snapshot = store.snapshot();
    for object in snapshot.iter() {
        assert!(!object.has_content());
        let json: serde_json::Value = serde_json::from_slice(&object.json().unwrap()).unwrap();
        assert_eq!(json["metadata"]["name"], object.key().name());
        assert!(json.get("spec").is_none());
    }
    let bytes = snapshot.iter().map(|object| object.bytes()).sum::<usize>();
    assert_eq!(store.bytes(), bytes);
}
