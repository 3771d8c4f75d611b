//! The store against a naive reference, and rule by rule.

mod model;
mod queries;

use lariat_core::{Gvk, RawObject, ResourceVersion};
use serde_json::json;

use super::*;

/// Which object and which of its states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    uid: u8,
    version: u64,
}

fn gvk() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

/// Makes an object whose labels and owner change from state to state.
fn object(key: u8, state: State) -> RawObject {
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
    let told = store.apply(deltas, Content::Whole);
    told.iter().map(text).collect()
}

#[test]
fn replayed_events_change_nothing() {
    let store = Store::default();
    let present = |version| Delta::Present(object(0, State { uid: 1, version }));
    assert_eq!(
        changes(&store, vec![present(1), present(2)]),
        ["added 1", "updated 1 2"]
    );
    assert_eq!(
        changes(&store, vec![present(1), present(2)]),
        Vec::<String>::new()
    );
    let gone = |version| Delta::Gone(object(0, State { uid: 1, version }));
    assert_eq!(changes(&store, vec![gone(3), gone(3)]), ["deleted 3"]);
}

#[test]
fn another_object_under_the_same_name_is_a_deletion_and_an_addition() {
    let store = Store::default();
    let present = |uid, version| Delta::Present(object(0, State { uid, version }));
    changes(&store, vec![present(1, 1)]);
    assert_eq!(
        changes(&store, vec![present(2, 5)]),
        ["deleted 1", "added 5"]
    );
    let late = Delta::Gone(object(0, State { uid: 1, version: 4 }));
    assert_eq!(
        changes(&store, vec![late]),
        Vec::<String>::new(),
        "the successor stays"
    );
}

#[test]
fn a_server_restored_from_a_backup_is_believed() {
    let store = Store::default();
    changes(
        &store,
        vec![Delta::Present(object(
            0,
            State {
                uid: 1,
                version: 900,
            },
        ))],
    );
    let listing = Listing::after(0, false, Content::Whole);
    let told = store.list_page(&listing, vec![object(0, State { uid: 1, version: 7 })]);
    assert!(matches!(&told[..], [Change::Updated { .. }]));
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
fn a_value_is_decoded_once_while_somebody_has_it() {
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
fn a_write_of_ours_is_shown_at_once_and_its_echo_changes_nothing() {
    let store = Store::default();
    let state = |version| object(0, State { uid: 1, version });
    changes(&store, vec![Delta::Present(state(1))]);
    let told = store.wrote(state(7), Content::Whole);
    assert!(matches!(&told[..], [Change::Updated { .. }]));
    let late = vec![Delta::Present(state(3)), Delta::Present(state(7))];
    assert_eq!(changes(&store, late), Vec::<String>::new());
    assert_eq!(
        changes(&store, vec![Delta::Present(state(8))]),
        ["updated 7 8"]
    );
}

#[test]
fn what_we_deleted_does_not_come_back_by_older_events() {
    let store = Store::default();
    let state = |uid, version| object(0, State { uid, version });
    changes(&store, vec![Delta::Present(state(1, 1))]);
    let key = state(1, 1).key().clone();
    assert_eq!(store.deleted(&key, state(1, 1).uid()).len(), 1);
    let late = vec![Delta::Present(state(1, 2)), Delta::Gone(state(1, 3))];
    assert_eq!(changes(&store, late), Vec::<String>::new());
    assert_eq!(
        changes(&store, vec![Delta::Present(state(2, 4))]),
        ["added 4"]
    );
}

#[test]
fn where_versions_do_not_compare_the_server_is_believed() {
    let store = Store::default();
    let state = |version: &str| {
        let json = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": version}});
        RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap()
    };
    store.wrote(state("x9"), Content::Whole);
    assert_eq!(
        changes(&store, vec![Delta::Present(state("x8"))]),
        ["updated x9 x8"]
    );
}

#[test]
fn a_list_from_before_a_write_of_ours_does_not_undo_it() {
    let store = Store::default();
    let state = |key, version| object(key, State { uid: key, version });
    let listing = Listing::after(0, false, Content::Whole);
    store.list_page(&listing, vec![state(1, 5)]);
    store.wrote(state(1, 11), Content::Whole);
    store.wrote(state(2, 12), Content::Whole);
    let told = store.list_page(&listing, vec![state(1, 9)]);
    assert!(told.is_empty());
    assert!(
        store
            .end_listing(&listing, &ResourceVersion::from(10))
            .is_empty()
    );
    let versions: Vec<String> = store
        .snapshot()
        .iter()
        .map(|object| object.version().to_string())
        .collect();
    assert_eq!(versions, ["11", "12"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_confirms_a_write_is_believed_after_a_minute() {
    let store = Store::default();
    let state = |version| object(0, State { uid: 1, version });
    store.wrote(state(1000), Content::Whole);
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    let listing = Listing::after(0, false, Content::Whole);
    let told = store.list_page(&listing, vec![state(7)]);
    assert!(matches!(&told[..], [Change::Updated { .. }]));
}

#[test]
fn content_that_arrives_later_takes_the_place_of_metadata_without_a_change() {
    let store = Store::default();
    let state = || object(0, State { uid: 1, version: 1 });
    store.apply(vec![Delta::Present(state())], Content::MetadataOnly);
    let partial = store.get(state().key()).unwrap();
    assert!(
        partial
            .decode::<serde_json::Value>(&gvk())
            .unwrap_err()
            .is_no_content()
    );
    let listing = Listing::after(0, false, Content::Whole);
    assert!(store.list_page(&listing, vec![state()]).is_empty());
    assert!(store.end_listing(&listing, &1.into()).is_empty());
    let whole = store.get(state().key()).unwrap();
    assert!(whole.has_content() && whole.decode::<serde_json::Value>(&gvk()).is_ok());
    assert!(store.snapshot().get(state().key()).unwrap().has_content());
}

#[test]
fn a_kind_that_grows_is_compressed_and_reads_the_same() {
    let store = Store::default();
    let listing = Listing::after(0, true, Content::Whole);
    let page = |from: u16| {
        (from..from + 500).map(|number| {
            let json = json!({"metadata": {"name": format!("o{number}"), "uid": format!("u{number}"),
                "resourceVersion": "1"}, "data": {"filling": "abc".repeat(1000)}});
            RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap()
        })
    };
    store.list_page(&listing, page(0).collect());
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
        vec![Delta::Present(object(0, State { uid: 1, version: 1 }))],
        Content::Whole,
    );
    let key = object(0, State { uid: 1, version: 1 }).key().clone();
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
    let state = |key, version| Delta::Present(object(key, State { uid: key, version }));
    store.apply((0..200).map(|key| state(key, 1)).collect(), Content::Whole);
    let before = store.snapshot();
    store.apply((0..200).map(|key| state(key, 2)).collect(), Content::Whole);
    store.retain(|object| object.key().namespace() == Some("a"));
    assert_eq!(before.len(), 200);
    assert!(before.iter().all(|object| *object.version() == 1.into()));
    assert_eq!(store.snapshot().len(), 67);
}

#[test]
fn the_answer_to_a_write_that_comes_after_the_end_of_the_object_does_not_bring_it_back() {
    let store = Store::default();
    let state = |version| object(0, State { uid: 1, version });
    changes(
        &store,
        vec![Delta::Present(state(5)), Delta::Present(state(6))],
    );
    changes(&store, vec![Delta::Gone(state(7))]);
    assert!(store.wrote(state(6), Content::Whole).is_empty());
    // Nor one that a list swept away.
    changes(
        &store,
        vec![Delta::Present(object(1, State { uid: 2, version: 8 }))],
    );
    let listing = Listing::after(0, false, Content::Whole);
    assert_eq!(store.end_listing(&listing, &9.into()).len(), 1);
    let late = object(1, State { uid: 2, version: 8 });
    assert!(store.wrote(late, Content::Whole).is_empty());
}

#[test]
fn an_answer_whose_version_does_not_compare_is_left_to_the_watch() {
    let store = Store::default();
    let state = |version: &str| {
        let json = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": version}});
        RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap()
    };
    changes(&store, vec![Delta::Present(state("x7"))]);
    assert!(store.wrote(state("x6"), Content::Whole).is_empty());
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
    let state = || object(0, State { uid: 1, version: 1 });
    store.apply(vec![Delta::Present(state())], Content::MetadataOnly);
    store
        .add_index(&gvk(), "filling", Arc::new(by_filling))
        .unwrap();
    let filling = format!("{:?}", "x".repeat(200));
    let count = || store.count_by_index(&gvk(), "filling", &filling).unwrap();
    assert_eq!(count(), 0);
    let listing = Listing::after(0, false, Content::Whole);
    store.list_page(&listing, vec![state()]);
    assert_eq!(count(), 1);
    let listing = Listing::after(1, false, Content::MetadataOnly);
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
        "the last few, and the one that somebody has"
    );
    drop(held);
}
