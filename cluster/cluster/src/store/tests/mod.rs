//! The store: against a naive reference, and what it does with bytes and tasks.

mod model;

use std::collections::HashMap;

use lariat_core::ObjectKey;
use serde_json::json;

use super::state::FIRST_REVISION;
use super::*;

/// A few changes, whatever their size.
const FEW: Retention = Retention {
    changes: 10,
    bytes: usize::MAX,
};

fn draft(key: &ObjectKey, size: usize) -> Draft {
    let object = json!({
        "kind": "ConfigMap", "apiVersion": "v1", "data": {"text": "x".repeat(size)},
        "metadata": {"name": key.name(), "namespace": key.namespace(), "uid": "u"},
    });
    Draft::new(object.as_object().unwrap())
}

#[test]
fn a_stored_object_is_encoded_once_with_its_version_in_place() {
    let store = Store::new(FEW);
    let table = store.table("configmaps");
    let object = json!({
        "kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "\"}"},
        "metadata": {
            "uid": "u", "name": "a", "namespace": "n", "resourceVersion": "stale",
            "labels": {"l": "1"},
        },
    });
    let key = ObjectKey::namespaced("n", "a");
    let write = Write::new(table, &key, None, object.as_object().map(Draft::new));
    let stored = store.commit(write).unwrap();
    let expected = concat!(
        r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","#,
        r#""resourceVersion":"501","labels":{"l":"1"}},"data":{"a":"\"}"}}"#,
    );
    assert_eq!(stored.json(), expected);
    let frame = |event: &str| format!("{{\"type\":\"{event}\",\"object\":{expected}}}\n");
    assert_eq!(stored.frame(EventType::Added), frame("ADDED"));
    assert_eq!(stored.frame(EventType::Modified), frame("MODIFIED"));
    let later = stored.with_version(123_456, EventType::Deleted);
    assert_eq!(later.json(), expected.replace("501", "123456"));
}

#[test]
fn a_watcher_reads_the_very_bytes_that_are_stored() {
    let store = Store::new(FEW);
    let table = store.table("configmaps");
    let key = ObjectKey::namespaced("n", "a");
    let write = Write::new(table, &key, None, Some(draft(&key, 0)));
    let stored = store.commit(write).unwrap();
    let (events, _) = store.events(table, FIRST_REVISION, ReadLimit::ALL).unwrap();
    let one = events[0].object.frame(EventType::Added);
    let another = events[0].object.frame(EventType::Added);
    assert_eq!(one.as_ptr(), another.as_ptr());
    assert!(one.as_ptr_range().contains(&stored.json().as_ptr()));
}

#[tokio::test]
async fn a_write_wakes_one_task_whatever_the_number_of_watchers() {
    let store = Store::new(FEW);
    let table = store.table("configmaps");
    let receivers: Vec<_> = (0..100).map(|_| store.subscribe(table)).collect();
    let key = ObjectKey::namespaced("n", "a");
    let write = Write::new(table, &key, None, Some(draft(&key, 0)));
    store.commit(write).unwrap();
    // The commit itself notifies no watcher; the dispatcher does.
    assert!(
        receivers
            .iter()
            .all(|receiver| !receiver.has_changed().unwrap())
    );
    let dispatch = store.dispatch();
    tokio::select! {
        biased;
        () = dispatch => {}
        () = tokio::task::yield_now() => {}
    }
    assert!(
        receivers
            .iter()
            .all(|receiver| receiver.has_changed().unwrap())
    );
}

#[test]
fn a_portion_ends_after_so_many_bytes_and_has_one_change_at_least() {
    let store = Store::new(FEW);
    let table = store.table("configmaps");
    let key = ObjectKey::namespaced("n", "a");
    let mut expected = None;
    for _ in 0..5 {
        let write = Write::new(table, &key, expected, Some(draft(&key, 1000)));
        expected = Some(store.commit(write).unwrap().revision());
    }
    for (bytes, read) in [(1, 1), (1100, 1), (1500, 2), (3000, 3), (usize::MAX, 5)] {
        let limit = ReadLimit {
            changes: 100,
            bytes,
        };
        let (events, complete_to) = store.events(table, FIRST_REVISION, limit).unwrap();
        assert_eq!(events.len(), read, "{bytes}");
        assert_eq!(complete_to, FIRST_REVISION + read as u64, "{bytes}");
    }
}

#[test]
fn a_resource_that_changes_much_takes_no_history_from_the_others() {
    let bytes = 100_000;
    let store = Store::new(Retention {
        changes: 1000,
        bytes,
    });
    let tables = ["configmaps", "secrets"].map(|name| store.table(name));
    let key = ObjectKey::namespaced("n", "a");
    for (table, writes) in tables.into_iter().zip([10, 900]) {
        let mut expected = None;
        for _ in 0..writes {
            let write = Write::new(table, &key, expected, Some(draft(&key, 1000)));
            expected = Some(store.commit(write).unwrap().revision());
        }
    }
    let counts = store.counts();
    let total: usize = counts.iter().map(|counts| counts.history_bytes).sum();
    assert!((bytes - 2000..=bytes).contains(&total), "{total}");
    assert_eq!(counts[0].changes, 10);
    assert!(counts[1].changes < 100, "{}", counts[1].changes);
}

#[test]
fn memory_is_given_back_when_changes_are_forgotten() {
    let store = Store::new(Retention {
        changes: usize::MAX,
        bytes: usize::MAX,
    });
    let table = store.table("configmaps");
    for number in 0..20_000 {
        let key = ObjectKey::namespaced("n", &format!("object-{number}"));
        let write = Write::new(table, &key, None, Some(draft(&key, 0)));
        store.commit(write).unwrap();
    }
    let room = || store.state.lock().tables[table.0].history.room();
    assert!(room() >= 20_000);
    store.age_out(store.revision() - 10, &HashMap::new());
    assert!(room() <= 1024, "{}", room());
}
