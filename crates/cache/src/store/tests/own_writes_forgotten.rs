//! How long the store remembers what this process wrote.

use std::time::Duration;

use super::own_writes::{LAST, list, shown, state};
use super::*;

fn own_writes(store: &Store) -> (usize, usize) {
    let writer = store.kept.writer.lock();
    (writer.own.len(), writer.own.most())
}

/// Writes an object that no list and no watch is going to show.
fn leave(store: &Store, number: usize) {
    let metadata = json!({"name": format!("o{number}"), "uid": number.to_string(),
        "resourceVersion": (number + 10).to_string()});
    let json = json!({ "metadata": metadata }).to_string();
    store.left(&RawObject::parse(json.as_bytes(), &gvk()).unwrap());
}

#[tokio::test(start_paused = true)]
async fn writes_that_nothing_is_going_to_show_are_forgotten_after_a_minute() {
    let store = Store::default();
    list(&store, 1, vec![]);
    for number in 0..50_000 {
        leave(&store, number);
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    // Of the last minute are 600.
    let remembered = own_writes(&store);
    assert!(remembered.0 <= 1_201, "{remembered:?}");
    assert!(remembered.0 <= remembered.1, "{remembered:?}");
}

#[test]
fn own_write_is_forgotten_once_a_watch_passes_its_version() {
    for news in [
        Delta::Present(state(1, 7)),
        Delta::Present(state(1, 8)),
        Delta::Deleted(state(1, 8)),
    ] {
        let store = Store::default();
        list(&store, 1, vec![state(1, 1)]);
        store.wrote(state(1, 7), Content::Whole, LAST);
        changes(&store, vec![Delta::Present(state(1, 6))]);
        assert_eq!(own_writes(&store).0, 1);
        assert_eq!(store.unconfirmed().len(), 1);
        changes(&store, vec![news]);
        assert_eq!(own_writes(&store).0, 0);
        // Nor is one remembered by which the object has left the selection.
        store.wrote(state(1, 9), Content::Whole, LAST);
        store.left(&state(1, 10));
        assert_eq!(own_writes(&store).0, 1);
        changes(&store, vec![Delta::Deleted(state(1, 10))]);
        assert_eq!(own_writes(&store).0, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_another_namespace_does_not_end_the_time_of_a_deletion() {
    let store = Store::default();
    let [deleted, neighbour] = [2, 0].map(|key| object(key, TestState { uid: 5, version: 2 }));
    let (own, other) = (deleted.key().namespace(), neighbour.key().namespace());
    assert_ne!(own, other);
    for namespace in [own, other] {
        let listing = store.begin_listing(true, Content::Whole, namespace.map(Arc::from));
        store.end_listing(&listing, &1.into());
    }
    store.deleted(deleted.key(), deleted.uid(), None, LAST);
    tokio::time::advance(Duration::from_secs(90)).await;
    assert!(!store.watch_opened(other));
    assert!(!store.watch_opened(own));
    let late = vec![Delta::Present(deleted)];
    assert_eq!(changes(&store, late), Vec::<String>::new());
}

/// As behind a proxy that cuts each watch after 50 seconds.
#[tokio::test(start_paused = true)]
async fn deletions_are_forgotten_though_no_watch_lasts_for_a_minute() {
    let store = Store::default();
    list(&store, 1, vec![]);
    let (deleted, other) = (state(1, 2), |version| {
        object(1, TestState { uid: 9, version })
    });
    store.deleted(deleted.key(), deleted.uid(), None, LAST);
    for version in 3..18 {
        assert!(!store.watch_opened(None));
        tokio::time::advance(Duration::from_millis(100)).await;
        changes(&store, vec![Delta::Present(other(version))]);
        tokio::time::advance(Duration::from_millis(49_900)).await;
    }
    // A server that was restored from a backup has the object again.
    let reported = changes(&store, vec![Delta::Present(state(1, 20))]);
    assert_eq!(reported, ["added 20"]);
    assert_eq!(own_writes(&store).0, 0);
}

#[tokio::test(start_paused = true)]
async fn a_list_in_progress_may_be_older_than_writes_of_long_ago() {
    let store = Store::default();
    let listing = store.begin_listing(true, Content::Whole, None);
    for number in 0..5_000 {
        leave(&store, number);
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    assert_eq!(own_writes(&store).0, 5_000);
    // The list shows the first of them as it was before.
    let metadata = json!({"name": "o0", "uid": "0", "resourceVersion": "2"});
    let json = json!({ "metadata": metadata }).to_string();
    let page = vec![RawObject::parse(json.as_bytes(), &gvk()).unwrap()];
    assert!(store.list_page(&listing, page).is_empty());
    // One that was given up shows nothing.
    store.abandon_lists();
    for number in 5_000..20_000 {
        leave(&store, number);
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    let remembered = own_writes(&store);
    assert!(remembered.0 <= 1_201, "{remembered:?}");
}

/// The server has the object again after an unnoticed restore, or has only promised to delete it.
#[tokio::test(start_paused = true)]
async fn dropped_state_after_deletion_requires_a_list_once_fence_ends() {
    for (is_ended, is_opened) in [(false, false), (false, true), (true, false), (true, true)] {
        let store = Store::default();
        list(&store, 1, vec![state(1, 1)]);
        assert!(!store.watch_opened(None));
        store.deleted(state(1, 1).key(), state(1, 1).uid(), None, LAST);
        let late = vec![Delta::Present(state(1, 2))];
        assert_eq!(changes(&store, late), Vec::<String>::new());
        if is_ended {
            changes(&store, vec![Delta::Deleted(state(1, 3))]);
        }
        assert!(!store.must_list(None), "the deletion may still arrive");
        tokio::time::advance(Duration::from_secs(61)).await;
        let requires = if is_opened {
            assert_eq!(store.must_list(None), !is_ended);
            store.watch_opened(None)
        } else {
            store.must_list(None)
        };
        assert_eq!(requires, !is_ended);
        list(&store, 4, vec![state(1, 2)]);
        assert_eq!(shown(&store), Some(2));
        assert!(!store.must_list(None), "it was listed");
    }
}
