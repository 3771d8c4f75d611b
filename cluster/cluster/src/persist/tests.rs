//! The file against the store it was written from.

use std::path::PathBuf;

use lariat_apimachinery::kinds::TableId;
use lariat_core::ObjectKey;
use proptest::prelude::*;
use serde_json::json;
use tokio::task::yield_now;

use super::log::Log;
use crate::store::{Draft, EventType, Range, ReadLimit, Retention, Store, Write};

const HISTORY: usize = 20;

const RETENTION: Retention = Retention {
    changes: HISTORY,
    bytes: usize::MAX,
};

/// A store whose file is in memory.
struct Kept {
    store: Store,
    log: Log,
    table: TableId,
}

impl Kept {
    fn new() -> Self {
        Self::with(RETENTION)
    }

    fn with(retention: Retention) -> Self {
        let (log, is_new) = Log::open(PathBuf::from(":memory:"), retention).expect("it is empty");
        assert!(is_new);
        let mut store = Store::new(retention);
        store.make_durable();
        store.rewind_to(&store.snapshot());
        Self {
            table: store.table("configmaps"),
            store,
            log,
        }
    }

    fn commit(&self, number: u8, puts: bool) {
        let key = ObjectKey::namespaced("n", &format!("object-{number}"));
        let expected = self.store.get(self.table, &key);
        let object = json!({
            "kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "\u{e9}\u{1F980}"},
            "metadata": {"name": key.name(), "namespace": "n", "uid": "u", "labels": {"l": "1"}},
        });
        let draft = object.as_object().filter(|_| puts).map(Draft::new);
        let expected = expected.map(|stored| stored.revision());
        let write = Write::new(self.table, &key, expected, draft);
        // Removing what is not there does nothing.
        assert!(self.store.commit(write).is_ok() || !puts);
    }

    fn flush(&mut self) {
        if let Some(batch) = self.store.take_batch() {
            self.log.write(&batch).expect("there is memory");
            // As after a commit that seemed to fail.
            self.log.write(&batch).expect("it may be written again");
            self.store.written(&batch);
        }
    }

    fn rows(&self) -> i64 {
        let query = "SELECT count(*) FROM log";
        let count = self.log.connection.query_row(query, [], |row| row.get(0));
        count.expect("there is a log")
    }

    fn reopened(&mut self) -> Store {
        let mut store = Store::new(RETENTION);
        self.log.load(&mut store).expect("the log is whole");
        store.table("configmaps");
        store
    }
}

/// Returns the objects at a revision as JSON, if that is known.
fn state(store: &Store, table: TableId, at: u64) -> Option<Vec<bytes::Bytes>> {
    let range = Range {
        at: Some(at),
        ..Range::default()
    };
    let page = store.range(table, &range).ok()?;
    Some(page.objects.iter().map(|stored| stored.json()).collect())
}

/// Returns the events after a revision as watchers see them.
fn events(store: &Store, table: TableId, after: u64) -> Vec<(u64, EventType, bytes::Bytes, bool)> {
    let (events, _) = store
        .events(table, after, ReadLimit::ALL)
        .expect("it is known");
    let each = events.iter().map(|event| {
        let frame = event.object.frame(event.event);
        (event.revision, event.event, frame, event.previous.is_some())
    });
    each.collect()
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8),
    Remove(u8),
    Flush,
    Compact,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0_u8..5).prop_map(Step::Put),
        4 => (0_u8..5).prop_map(Step::Remove),
        4 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn what_is_read_back_is_what_was_there(steps in prop::collection::vec(step(), 1..80)) {
        let mut kept = Kept::new();
        for step in &steps {
            match step {
                Step::Put(number) => kept.commit(*number, true),
                Step::Remove(number) => kept.commit(*number, false),
                Step::Flush => kept.flush(),
                Step::Compact => kept.store.compact(),
                Step::Restart => {
                    kept.flush();
                    let mut store = kept.reopened();
                    store.make_durable();
                    store.skip_revisions(3);
                    kept.table = store.table("configmaps");
                    kept.store = store;
                }
            }
        }
        kept.flush();
        let again = kept.reopened();
        let table = again.table("configmaps");
        prop_assert_eq!(again.revision(), kept.store.revision());
        for at in 500..=again.revision() {
            prop_assert_eq!(state(&again, table, at), state(&kept.store, kept.table, at));
        }
        let floor = again.oldest(table);
        prop_assert_eq!(floor, kept.store.oldest(kept.table));
        prop_assert_eq!(events(&again, table, floor), events(&kept.store, kept.table, floor));
    }
}

#[test]
fn the_log_does_not_grow_beyond_its_history_for_ever() {
    let mut kept = Kept::new();
    for round in 0..4000_u64 {
        kept.commit((round % 7) as u8, round % 5 != 0);
        kept.flush();
        if kept.log.needs_compaction() {
            kept.log.compact().unwrap();
        }
        assert!(kept.rows() <= 1000 + HISTORY as i64 + 10);
    }
    let again = kept.reopened();
    let table = again.table("configmaps");
    let revision = again.revision();
    for at in revision - HISTORY as u64..=revision {
        let expected = state(&kept.store, kept.table, at);
        assert!(expected.is_some());
        assert_eq!(state(&again, table, at), expected);
    }
}

#[test]
fn the_history_in_the_log_is_bounded_by_its_bytes_too() {
    let bytes = 10_000;
    let mut kept = Kept::with(Retention {
        changes: usize::MAX,
        bytes,
    });
    for _ in 0..200 {
        kept.commit(0, true);
    }
    kept.flush();
    kept.log.compact().unwrap();
    let page = kept.store.range(kept.table, &Range::default()).unwrap();
    let size = page.objects[0].json().len();
    // What fits, and the state from which on it is complete.
    assert_eq!(kept.rows(), (bytes / size + 1) as i64);
}

#[tokio::test]
async fn what_was_forgotten_stays_forgotten_when_the_file_is_tidied() {
    let mut kept = Kept::new();
    for round in 0..100 {
        kept.commit(round % 7, true);
    }
    kept.store.compact();
    kept.flush();
    kept.log.compact().unwrap();
    let query = "SELECT compacted FROM meta";
    let compacted: i64 = kept
        .log
        .connection
        .query_row(query, [], |row| row.get(0))
        .unwrap();
    assert_eq!(compacted.unsigned_abs(), kept.store.revision());
}

#[tokio::test]
async fn revisions_that_are_used_again_after_a_rewind_are_not_taken_for_those_on_disk() {
    let mut kept = Kept::new();
    kept.flush();
    let snapshot = kept.store.snapshot();
    for number in 0..3 {
        kept.commit(number, true);
    }
    kept.flush();
    kept.commit(3, true);
    let late = kept.store.take_batch().unwrap();
    kept.store.rewind_to(&snapshot);
    kept.commit(4, true);
    let from = snapshot.revision();
    let visible = |kept: &Kept| {
        kept.store
            .events(kept.table, from, ReadLimit::ALL)
            .unwrap()
            .0
            .len()
    };
    assert_eq!(visible(&kept), 0);
    kept.log.write(&late).unwrap();
    kept.store.written(&late);
    assert_eq!(visible(&kept), 0);
    kept.flush();
    assert_eq!(visible(&kept), 1);
}

#[tokio::test]
async fn nothing_is_told_before_it_is_on_disk_and_what_comes_together_is_written_together() {
    let mut kept = Kept::new();
    kept.flush();
    let before = kept.store.revision();
    for number in 0..3 {
        kept.commit(number, true);
    }
    let mut settled = Box::pin(kept.store.settled());
    tokio::select! {
        biased;
        _ = &mut settled => panic!("it is not on disk"),
        () = yield_now() => {}
    }
    let (events, to) = kept
        .store
        .events(kept.table, before, ReadLimit::ALL)
        .unwrap();
    assert_eq!((events.len(), to), (0, before));
    let batch = kept.store.take_batch().unwrap();
    assert_eq!(batch.records.len(), 3);
    assert!(kept.store.take_batch().is_none());
    kept.store.written(&batch);
    settled.await.unwrap();
    let (events, to) = kept
        .store
        .events(kept.table, before, ReadLimit::ALL)
        .unwrap();
    assert_eq!((events.len(), to), (3, before + 3));
}

#[tokio::test]
async fn whoever_waits_learns_that_the_disk_failed_or_that_nothing_is_written_any_more() {
    let mut kept = Kept::new();
    kept.flush();
    kept.commit(0, true);
    let (settled, ()) = tokio::join!(kept.store.settled(), async {
        kept.store.not_written("no space left");
    });
    assert_eq!(settled.unwrap_err().to_string(), "no space left");
    let (settled, ()) = tokio::join!(kept.store.settled(), async { kept.store.close() });
    let closed = "the cluster has been shut down";
    assert_eq!(settled.unwrap_err().to_string(), closed);
    assert_eq!(kept.store.settled().await.unwrap_err().to_string(), closed);
    // What was written before is no matter of doubt.
    kept.flush();
    kept.store.settled().await.unwrap();
}
