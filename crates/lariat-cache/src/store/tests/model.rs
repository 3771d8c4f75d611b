//! The store against a naive reference, and the changes it tells against the states it shows.

use std::collections::{BTreeMap, BTreeSet};

use lariat_core::{LabelSelector, Uid};
use proptest::prelude::*;

use super::*;

/// What the API server holds, and what it did.
#[derive(Debug, Default)]
struct Server {
    version: u64,
    objects: BTreeMap<u8, State>,
    next_uid: u8,
}

#[derive(Debug, Clone)]
enum Step {
    /// Something happens at the server; `told` says how often the watch tells it.
    Put {
        key: u8,
        told: usize,
    },
    Delete {
        key: u8,
        told: usize,
    },
    /// This process writes; the watch tells it later, or never.
    Write {
        key: u8,
    },
    /// This process deletes.
    Remove {
        key: u8,
    },
    /// The watch tells what it has not told yet.
    CatchUp,
    /// A new list, in pages of this size; this process writes an object after the first.
    List {
        page: usize,
        write: Option<u8>,
    },
    Store(Storage),
}

impl Server {
    fn put(&mut self, key: u8) -> State {
        self.version += 1;
        let uid = self.objects.get(&key).map(|state| state.uid);
        let uid = uid.unwrap_or_else(|| {
            self.next_uid += 1;
            self.next_uid
        });
        let state = State {
            uid,
            version: self.version,
        };
        self.objects.insert(key, state);
        state
    }

    fn delete(&mut self, key: u8) -> Option<State> {
        let mut state = self.objects.remove(&key)?;
        self.version += 1;
        state.version = self.version;
        Some(state)
    }
}

/// The state an object was made from.
fn state_of(object: &CachedObject) -> (ObjectKey, State) {
    let uid = object.uid().to_string()[1..].parse().unwrap();
    let version = object.version().to_string().parse().unwrap();
    (object.key().clone(), State { uid, version })
}

fn key_of(key: u8) -> ObjectKey {
    let any = State { uid: 0, version: 0 };
    object(key, any).key().clone()
}

struct Bench {
    server: Server,
    store: Store,
    /// What somebody knows who sees only changes.
    follower: BTreeMap<ObjectKey, State>,
    /// What this process wrote or deleted last, by key.
    written: BTreeMap<u8, State>,
    removed: BTreeSet<(u8, u8)>,
    /// What the watch has not told yet.
    late: Vec<(u8, State, bool)>,
    lists: u32,
}

impl Bench {
    fn new() -> Self {
        let store = Store::default();
        let by_version = |object: &Arc<CachedObject>| vec![format!("v{}", object.version())];
        store
            .add_index(&gvk(), "version", Arc::new(by_version))
            .unwrap();
        Self {
            server: Server::default(),
            store,
            follower: BTreeMap::new(),
            written: BTreeMap::new(),
            removed: BTreeSet::new(),
            late: Vec::new(),
            lists: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Put { key, told } => {
                // A watch tells in order.
                self.catch_up();
                let state = self.server.put(key);
                self.tell(told, || Delta::Present(object(key, state)));
            }
            Step::Delete { key, told } => {
                self.catch_up();
                let Some(state) = self.server.delete(key) else {
                    return;
                };
                // What somebody else ended is not ours to be shown.
                self.written.remove(&key);
                self.tell(told, || Delta::Gone(object(key, state)));
            }
            Step::Write { key } => self.write(key),
            Step::Remove { key } => {
                let Some(state) = self.server.delete(key) else {
                    return;
                };
                let changes = self.store.deleted(&key_of(key), object(key, state).uid());
                if !changes.is_empty() {
                    self.removed.insert((key, state.uid));
                }
                self.written.remove(&key);
                self.late.push((key, state, true));
                self.take(&changes);
            }
            Step::CatchUp => self.catch_up(),
            Step::List { page, write } => self.list(page, write),
            Step::Store(storage) => {
                self.store.set_storage(storage);
                self.check();
            }
        }
    }

    fn write(&mut self, key: u8) {
        let state = self.server.put(key);
        self.late.push((key, state, false));
        self.written.insert(key, state);
        let changes = self.store.wrote(object(key, state), Content::Whole);
        self.take(&changes);
    }

    fn catch_up(&mut self) {
        for (key, state, gone) in std::mem::take(&mut self.late) {
            self.tell(1, || match gone {
                true => Delta::Gone(object(key, state)),
                false => Delta::Present(object(key, state)),
            });
        }
    }

    fn tell(&mut self, times: usize, delta: impl Fn() -> Delta) {
        let deltas = (0..times).map(|_| delta()).collect();
        let changes = self.store.apply(deltas, Content::Whole);
        self.take(&changes);
    }

    fn list(&mut self, page: usize, write: Option<u8>) {
        let listing = Listing::after(self.lists, self.lists == 0, Content::Whole);
        self.lists += 1;
        let unchanged: BTreeSet<_> = self.follower.clone().into_iter().collect();
        let version = ResourceVersion::from(self.server.version);
        let listed = self.server.objects.clone();
        let mut rest = listed
            .iter()
            .map(|(key, state)| object(*key, *state))
            .peekable();
        let (mut told, mut write) = (0, write);
        while rest.peek().is_some() {
            let page = rest.by_ref().take(page).collect();
            let changes = self.store.list_page(&listing, page);
            told += changes.len();
            self.take(&changes);
            if let Some(key) = write.take() {
                self.write(key);
            }
        }
        let changes = self.store.end_listing(&listing, &version);
        self.take(&changes);
        let expected: BTreeMap<ObjectKey, State> = self
            .server
            .objects
            .iter()
            .map(|(key, state)| (key_of(*key), *state))
            .collect();
        assert_eq!(
            self.follower, expected,
            "a list makes the cache equal to the server"
        );
        let same = expected
            .iter()
            .filter(|(k, s)| unchanged.contains(&((*k).clone(), **s)));
        let changed = expected.len() - same.count();
        assert!(told <= 2 * changed, "what did not change is not told");
    }

    /// Follows the changes; they have to fit each other.
    fn take(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Added { object, .. } => {
                    let (key, state) = state_of(object);
                    assert_eq!(self.follower.insert(key, state), None);
                }
                Change::Updated { old, new } => {
                    let (key, state) = state_of(new);
                    let before = self.follower.insert(key, state).unwrap();
                    assert_eq!(before, state_of(old).1);
                    assert_eq!(before.uid, state.uid);
                }
                Change::Deleted { last } => {
                    let (key, state) = state_of(last);
                    let before = self.follower.remove(&key).unwrap();
                    assert_eq!(before.uid, state.uid);
                }
                Change::Resynced { .. } => panic!("nothing is resynced here"),
            }
        }
        self.check();
    }

    /// What is shown is what was told, and never less than what was written.
    fn check(&self) {
        let snapshot = self.store.snapshot();
        let shown: BTreeMap<ObjectKey, State> =
            snapshot.iter().map(|object| state_of(object)).collect();
        assert_eq!(shown, self.follower);
        assert!(
            snapshot
                .iter()
                .is_sorted_by_key(|object| object.key().clone())
        );
        let bytes = snapshot.iter().map(|object| object.bytes()).sum::<usize>();
        assert_eq!(self.store.bytes(), bytes);
        assert_eq!(self.store.len(), shown.len());
        for (key, state) in &self.follower {
            let shown = self.store.get(key).unwrap();
            assert_eq!(state_of(&shown).1, *state);
            assert!(shown.decode::<serde_json::Value>(&gvk()).is_ok());
        }
        self.check_queries();
        for (key, wrote) in &self.written {
            match self.store.get(&key_of(*key)) {
                Some(object) => assert!(state_of(&object).1.version >= wrote.version),
                None => assert!(!self.server.objects.contains_key(key)),
            }
        }
        for (key, uid) in &self.removed {
            let shown = self.store.get(&key_of(*key));
            assert!(shown.is_none_or(|object| state_of(&object).1.uid != *uid));
        }
    }

    /// Every query finds what a look at each object finds.
    fn check_queries(&self) {
        let selectors = [
            "",
            "tier=t1",
            "tier in (t0,t2),app",
            "!tier",
            "tier notin (t1)",
            "app=x,tier=t0",
        ];
        for selector in selectors {
            let labels: LabelSelector = selector.parse().unwrap();
            for query in [
                Query::all().labels(labels.clone()),
                Query::in_namespace("a").labels(labels.clone()),
                Query::owned_by(&Uid::new("owner1")).labels(labels),
            ] {
                let snapshot = self.store.snapshot();
                let expected: Vec<_> = snapshot
                    .iter()
                    .filter(|object| query.matches(object))
                    .map(|o| o.key())
                    .collect();
                let found = self.store.select(&query);
                assert_eq!(
                    found.iter().map(|o| o.key()).collect::<Vec<_>>(),
                    expected,
                    "{query:?}"
                );
                assert_eq!(self.store.count(&query), expected.len());
            }
        }
        for (key, state) in &self.follower {
            let found = self
                .store
                .by_index(&gvk(), "version", &format!("v{}", state.version));
            let found: Vec<_> = found.unwrap().iter().map(|o| o.key().clone()).collect();
            assert!(found.contains(key));
            assert_eq!(self.store.count_by_index(&gvk(), "version", "v0"), Ok(0));
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let told = || prop_oneof![6 => Just(1_usize), 1 => Just(0), 1 => Just(2)];
    let storage = prop_oneof![
        Just(Storage::Plain),
        Just(Storage::Compressed),
        Just(Storage::Decoded),
        Just(Storage::Auto)
    ];
    prop_oneof![
        6 => (0_u8..7, told()).prop_map(|(key, told)| Step::Put { key, told }),
        4 => (0_u8..7, told()).prop_map(|(key, told)| Step::Delete { key, told }),
        3 => (0_u8..7).prop_map(|key| Step::Write { key }),
        2 => (0_u8..7).prop_map(|key| Step::Remove { key }),
        2 => Just(Step::CatchUp),
        2 => (1_usize..4, prop::option::of(0_u8..7))
            .prop_map(|(page, write)| Step::List { page, write }),
        1 => storage.prop_map(Step::Store),
    ]
}

proptest! {
    #[test]
    fn the_store_shows_what_it_tells_and_a_list_repairs_whatever_the_watch_missed(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut bench = Bench::new();
        // Indexes are made for larger stores; here they are kept up to date from the start.
        bench.store.index_for(&Query::owned_by(&Uid::new("owner1")));
        bench.store.index_for(&Query::all().labels("tier=t0".parse().unwrap()));
        for step in &steps {
            bench.step(step);
        }
        bench.catch_up();
        bench.list(2, None);
    }
}
