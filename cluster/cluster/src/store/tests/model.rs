//! The store against a naive reference that remembers every state there ever was.

use std::collections::BTreeMap;

use lariat_apimachinery::kinds::TableId;
use lariat_core::ObjectKey;
use proptest::prelude::*;

use super::draft;
use crate::store::range::Expired;
use crate::store::*;

#[derive(Debug, Clone)]
enum Step {
    /// Creates or replaces an object.
    Put {
        resource: usize,
        key: u8,
        seen: Seen,
        size: usize,
    },
    Remove {
        resource: usize,
        key: u8,
        seen: Seen,
    },
    Compact,
    /// Forgets what is older than the last so many revisions.
    AgeOut(u64),
}

/// A writer's view of the object it writes.
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
    resources: Vec<Resource>,
    /// The weight of each state, by its revision.
    weights: BTreeMap<u64, usize>,
    /// States before this one are not read any more.
    compacted: u64,
}

/// The reference for one resource.
struct Resource {
    table: TableId,
    /// The state at each revision, from the first on.
    states: Vec<(u64, Versions)>,
    /// The changes that are remembered, each with its cost.
    changes: Vec<(u64, usize)>,
    /// From where on all changes are remembered.
    floor: u64,
    /// The view of a watcher that reads a few events at a time.
    follower: Versions,
    cursor: u64,
}

const RETENTION: Retention = Retention {
    changes: 8,
    bytes: 9000,
};

/// The cost of a change beside its states.
const CHANGE: usize = 96;

fn key(number: u8) -> ObjectKey {
    let namespace = ["a", "a-b", "b"][usize::from(number) % 3];
    ObjectKey::namespaced(namespace, &format!("object-{number}"))
}

impl Resource {
    fn present(&self) -> &Versions {
        &self.states.last().unwrap().1
    }

    fn cost(&self) -> usize {
        self.changes.iter().map(|(_, cost)| cost).sum()
    }

    fn drop_oldest(&mut self) {
        let dropped = self.changes.remove(0).0;
        self.floor = self.floor.max(dropped);
    }
}

impl Pair {
    fn new() -> Self {
        let store = Store::new(RETENTION);
        let first = store.revision();
        let resource = |name| Resource {
            table: store.table(name),
            states: vec![(first, Versions::new())],
            changes: Vec::new(),
            floor: first,
            cursor: first,
            follower: Versions::new(),
        };
        Self {
            resources: ["configmaps", "secrets"].map(resource).into(),
            weights: BTreeMap::new(),
            compacted: first,
            store,
        }
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Put {
                resource,
                key: number,
                seen,
                size,
            } => self.write(resource, &key(number), seen, Some(size)),
            Step::Remove {
                resource,
                key: number,
                seen,
            } => self.write(resource, &key(number), seen, None),
            Step::Compact => {
                self.store.compact();
                for resource in &mut self.resources {
                    resource.changes.clear();
                    resource.floor = self.store.revision();
                }
            }
            Step::AgeOut(kept) => {
                let revision = self.store.revision().saturating_sub(kept);
                let cursors = self.resources.iter().map(|each| (each.table, each.cursor));
                self.store.age_out(revision, &cursors.collect());
                self.compacted = self.compacted.max(revision);
                for resource in &mut self.resources {
                    let changes = resource.changes.iter().rev();
                    let last = changes.map(|(at, _)| *at).find(|at| *at <= revision);
                    let last = last.unwrap_or(0);
                    resource.floor = resource.floor.max(last);
                    let revision = revision.min(resource.cursor);
                    while resource
                        .changes
                        .first()
                        .is_some_and(|(at, _)| *at <= revision)
                    {
                        resource.drop_oldest();
                    }
                }
            }
        }
    }

    fn write(&mut self, at: usize, key: &ObjectKey, seen: Seen, size: Option<usize>) {
        let resource = &mut self.resources[at];
        let is = resource.present().get(key).copied();
        let expected = match seen {
            Seen::TheTruth => is,
            Seen::Nothing => None,
            Seen::AnOldState => Some(1),
        };
        let revision = self.store.revision() + 1;
        let draft = size.map(|size| draft(key, size));
        let write = Write::new(resource.table, key, expected, draft);
        let outcome = self.store.commit(write);
        if expected != is || (size.is_none() && is.is_none()) {
            assert_eq!(outcome.unwrap_err(), WriteError::Raced);
            return;
        }
        let stored = outcome.unwrap();
        assert_eq!(stored.revision(), revision);
        let mut cost = CHANGE + is.map_or(0, |is| self.weights[&is]);
        self.weights.insert(revision, stored.weight());
        let mut next = resource.present().clone();
        if size.is_some() {
            next.insert(key.clone(), revision);
        } else {
            next.remove(key);
            cost += stored.weight();
        }
        resource.states.push((revision, next));
        resource.changes.push((revision, cost));
        self.trim(at);
    }

    /// Forgets what is too much, after a change of a resource.
    fn trim(&mut self, at: usize) {
        if self.resources[at].changes.len() > RETENTION.changes {
            self.resources[at].drop_oldest();
        }
        while self.resources.iter().map(Resource::cost).sum::<usize>() > RETENTION.bytes {
            let resources = self.resources.iter_mut();
            let spare = resources.filter(|resource| resource.changes.len() > 1);
            match spare.max_by_key(|resource| resource.cost()) {
                Some(largest) => largest.drop_oldest(),
                None => return,
            }
        }
    }

    /// Lets the watcher of a resource read on.
    fn follow(&mut self, at: usize, limit: ReadLimit) {
        let resource = &mut self.resources[at];
        let events = self.store.events(resource.table, resource.cursor, limit);
        let Ok((events, complete_to)) = events else {
            assert!(resource.cursor < resource.floor);
            // Too slow: it lists again, as an informer does.
            let page = self.store.range(resource.table, &Range::default()).unwrap();
            resource.follower = state_of(&page);
            resource.cursor = page.revision;
            return;
        };
        assert!(events.len() <= limit.changes);
        for event in &events {
            let key = event.object.key().clone();
            assert_eq!(event.object.revision(), event.revision);
            assert_eq!(event.previous.is_some(), event.event != EventType::Added);
            let before = match event.event {
                EventType::Deleted => resource.follower.remove(&key),
                _ => resource.follower.insert(key, event.revision),
            };
            let previous = event.previous.as_ref();
            assert_eq!(before, previous.map(|previous| previous.revision()));
        }
        resource.cursor = complete_to;
        if events.is_empty() || complete_to == self.store.revision() {
            assert_eq!(complete_to, self.store.revision());
            assert_eq!(&resource.follower, resource.present());
        }
    }

    fn check_reads(&self) {
        let counted: usize = self.resources.iter().map(Resource::cost).sum();
        let counts = self.store.counts();
        let bytes: usize = counts.iter().map(|each| each.history_bytes).sum();
        assert_eq!(counted, bytes);
        for (resource, counts) in self.resources.iter().zip(counts) {
            assert_eq!(counts.changes, resource.changes.len());
            assert_eq!(self.store.oldest(resource.table), resource.floor);
            self.check_reads_of(resource);
        }
    }

    fn check_reads_of(&self, resource: &Resource) {
        let oldest = resource.floor.max(self.compacted);
        for (revision, expected) in &resource.states {
            let range = Range {
                at: Some(*revision),
                ..Range::default()
            };
            match self.store.range(resource.table, &range) {
                Ok(page) => assert_eq!(state_of(&page), *expected, "at {revision}"),
                Err(Expired) => assert!(*revision < oldest),
            }
            let may_watch = self.store.reaches(resource.table, *revision);
            assert_eq!(may_watch, *revision >= resource.floor);
        }
        for namespace in ["a", "a-b", "b", "c"] {
            let range = Range {
                namespace: Some(namespace),
                ..Range::default()
            };
            let page = self.store.range(resource.table, &range).unwrap();
            let mut expected = resource.present().clone();
            expected.retain(|key, _| key.namespace() == Some(namespace));
            assert_eq!(state_of(&page), expected, "in {namespace}");
        }
    }

    /// Reads page by page at the present revision, with a write between the pages.
    fn check_pages(&mut self) {
        let table = self.resources[0].table;
        let expected = self.resources[0].present().clone();
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
            let Ok(page) = self.store.range(table, &range) else {
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
            self.write(0, &key(0), Seen::TheTruth, Some(0));
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

fn step() -> impl Strategy<Value = Step> {
    let seen = prop_oneof![8 => Just(Seen::TheTruth), 1 => Just(Seen::Nothing), 1 => Just(Seen::AnOldState)];
    let size = prop_oneof![4 => 0_usize..300, 1 => 1000_usize..12_000];
    prop_oneof![
        6 => (0_usize..2, 0_u8..7, seen.clone(), size)
            .prop_map(|(resource, key, seen, size)| Step::Put { resource, key, seen, size }),
        4 => (0_usize..2, 0_u8..7, seen)
            .prop_map(|(resource, key, seen)| Step::Remove { resource, key, seen }),
        1 => Just(Step::Compact),
        1 => (0_u64..6).prop_map(Step::AgeOut),
    ]
}

proptest! {
    #[test]
    fn the_store_does_what_the_naive_reference_does(
        steps in prop::collection::vec((step(), 0_usize..4, 1_usize..3000), 1..60),
    ) {
        let mut pair = Pair::new();
        for (at, (step, changes, bytes)) in steps.iter().enumerate() {
            pair.apply(step);
            if *changes > 0 {
                let limit = ReadLimit { changes: *changes, bytes: *bytes };
                pair.follow(at % 2, limit);
            }
            pair.check_reads();
        }
        for at in 0..2 {
            pair.follow(at, ReadLimit::ALL);
        }
        pair.check_pages();
    }
}
