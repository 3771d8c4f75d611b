//! The engine against a naive reference that remembers every state there ever was.

use std::collections::BTreeMap;

use lariat_apimachinery::kinds::TableId;
use lariat_core::ObjectKey;
use proptest::prelude::*;
use serde_json::json;

use super::range::Expired;
use super::state::FIRST_REVISION;
use super::*;

#[derive(Debug, Clone)]
enum Operation {
    /// Creates or replaces an object.
    Put {
        key: u8,
        seen: Seen,
    },
    Remove {
        key: u8,
        seen: Seen,
    },
    Compact,
}

/// What a writer believes about the object it writes.
#[derive(Debug, Clone, Copy)]
enum Seen {
    TheTruth,
    Nothing,
    AnOldState,
}

/// Objects by key, each as the revision at which it was written.
type Versions = BTreeMap<ObjectKey, u64>;

struct Pair {
    store: Store,
    table: TableId,
    /// The state at each revision, from the first on.
    states: Vec<(u64, Versions)>,
    /// What a watcher knows that reads a few events at a time.
    follower: Versions,
    cursor: u64,
}

const HISTORY: usize = 6;

fn key(number: u8) -> ObjectKey {
    let namespace = ["a", "a-b", "b"][usize::from(number) % 3];
    ObjectKey::namespaced(namespace, &format!("object-{number}"))
}

fn draft(key: &ObjectKey) -> Draft {
    let object = json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": key.name(), "namespace": key.namespace(), "uid": "u"},
    });
    Draft::new(object.as_object().unwrap())
}

impl Pair {
    fn new() -> Self {
        let store = Store::new(HISTORY);
        Self {
            table: store.table("configmaps"),
            states: vec![(store.revision(), Versions::new())],
            cursor: store.revision(),
            follower: Versions::new(),
            store,
        }
    }

    fn present(&self) -> &Versions {
        &self.states.last().unwrap().1
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Put { key: number, seen } => self.write(&key(*number), *seen, true),
            Operation::Remove { key: number, seen } => self.write(&key(*number), *seen, false),
            Operation::Compact => {
                self.follow(usize::MAX);
                self.store.compact();
            }
        }
    }

    fn write(&mut self, key: &ObjectKey, seen: Seen, puts: bool) {
        let is = self.present().get(key).copied();
        let expected = match seen {
            Seen::TheTruth => is,
            Seen::Nothing => None,
            Seen::AnOldState => Some(1),
        };
        let write = Write::new(self.table, key, expected, puts.then(|| draft(key)));
        let outcome = self.store.commit(write);
        if expected != is || (!puts && is.is_none()) {
            assert_eq!(outcome.unwrap_err(), Refused::Raced);
            return;
        }
        let revision = self.states.last().unwrap().0 + 1;
        assert_eq!(outcome.unwrap().revision(), revision);
        let mut next = self.present().clone();
        if puts {
            next.insert(key.clone(), revision)
        } else {
            next.remove(key)
        };
        self.states.push((revision, next));
    }

    /// Lets the watcher read on.
    fn follow(&mut self, limit: usize) {
        let Ok((events, complete_to)) = self.store.events(self.table, self.cursor, limit) else {
            // Too slow: it lists again, as an informer does.
            let page = self.store.range(self.table, &Range::default()).unwrap();
            self.follower = state_of(&page);
            self.cursor = page.revision;
            return;
        };
        for event in &events {
            let key = event.object.key().clone();
            assert_eq!(event.object.revision(), event.revision);
            assert_eq!(event.previous.is_some(), event.event != EventType::Added);
            let before = match event.event {
                EventType::Deleted => self.follower.remove(&key),
                _ => self.follower.insert(key, event.revision),
            };
            assert_eq!(
                before,
                event.previous.as_ref().map(|previous| previous.revision())
            );
            self.cursor = event.revision;
        }
        if events.len() < limit {
            self.cursor = complete_to;
            assert_eq!(&self.follower, self.present());
        }
    }

    fn check_reads(&self) {
        let oldest = self.store.oldest(self.table);
        for (revision, expected) in &self.states {
            let range = Range {
                at: Some(*revision),
                ..Range::default()
            };
            match self.store.range(self.table, &range) {
                Ok(page) => assert_eq!(state_of(&page), *expected, "at {revision}"),
                Err(Expired) => assert!(*revision < oldest),
            }
        }
        for namespace in ["a", "a-b", "b", "c"] {
            let range = Range {
                namespace: Some(namespace),
                ..Range::default()
            };
            let page = self.store.range(self.table, &range).unwrap();
            let mut expected = self.present().clone();
            expected.retain(|key, _| key.namespace() == Some(namespace));
            assert_eq!(state_of(&page), expected, "in {namespace}");
        }
    }

    /// Reads page by page at the present revision, with a write between the pages.
    fn check_pages(&mut self) {
        let expected = self.present().clone();
        let at = Some(self.store.revision());
        let mut read = Versions::new();
        let mut start: Option<String> = None;
        loop {
            let range = Range {
                at,
                start: start.as_deref(),
                limit: Some(2),
                ..Range::default()
            };
            let Ok(page) = self.store.range(self.table, &range) else {
                return;
            };
            let objects = page.objects.len();
            read.extend(state_of(&page));
            assert_eq!(page.remaining, expected.len() - read.len());
            if page.remaining == 0 {
                break;
            }
            assert_eq!(objects, 2);
            start = page.objects.last().map(|last| format!("{}\0", last.key()));
            self.write(&key(0), Seen::TheTruth, true);
        }
        assert_eq!(read, expected);
    }
}

fn state_of(page: &Page) -> Versions {
    assert!(page.objects.is_sorted_by_key(|stored| stored.key().clone()));
    page.objects
        .iter()
        .map(|stored| (stored.key().clone(), stored.revision()))
        .collect()
}

fn operation() -> impl Strategy<Value = Operation> {
    let seen = prop_oneof![8 => Just(Seen::TheTruth), 1 => Just(Seen::Nothing), 1 => Just(Seen::AnOldState)];
    prop_oneof![
        6 => (0_u8..7, seen.clone()).prop_map(|(key, seen)| Operation::Put { key, seen }),
        4 => (0_u8..7, seen).prop_map(|(key, seen)| Operation::Remove { key, seen }),
        1 => Just(Operation::Compact),
    ]
}

proptest! {
    #[test]
    fn the_store_does_what_the_naive_reference_does(
        operations in prop::collection::vec((operation(), 0_usize..4), 1..60),
    ) {
        let mut pair = Pair::new();
        for (operation, reads) in &operations {
            pair.apply(operation);
            if *reads > 0 {
                pair.follow(*reads);
            }
            pair.check_reads();
        }
        pair.follow(usize::MAX);
        pair.check_pages();
    }
}

#[test]
fn a_stored_object_is_encoded_once_with_its_version_in_place() {
    let store = Store::new(10);
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
    let store = Store::new(10);
    let table = store.table("configmaps");
    let key = ObjectKey::namespaced("n", "a");
    let write = Write::new(table, &key, None, Some(draft(&key)));
    let stored = store.commit(write).unwrap();
    let (events, _) = store.events(table, FIRST_REVISION, 10).unwrap();
    let one = events[0].object.frame(EventType::Added);
    let another = events[0].object.frame(EventType::Added);
    assert_eq!(one.as_ptr(), another.as_ptr());
    assert!(one.as_ptr_range().contains(&stored.json().as_ptr()));
}

#[tokio::test]
async fn a_write_wakes_one_task_whatever_the_number_of_watchers() {
    let store = Store::new(10);
    let table = store.table("configmaps");
    let receivers: Vec<_> = (0..100).map(|_| store.subscribe(table)).collect();
    let key = ObjectKey::namespaced("n", "a");
    let write = Write::new(table, &key, None, Some(draft(&key)));
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
