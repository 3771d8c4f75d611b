//! The store against a naive reference, and the changes it tells against the states it shows.

use std::collections::{BTreeMap, BTreeSet};

use lariat_core::{Gvk, RawObject};
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Which object and which of its states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    uid: u8,
    version: u64,
}

/// What the API server holds, and what it did.
#[derive(Debug, Default)]
struct Server {
    version: u64,
    objects: BTreeMap<u8, State>,
}

#[derive(Debug, Clone)]
enum Step {
    /// Something happens at the server; `told` says whether the watch tells it, and how often.
    Put {
        key: u8,
        told: usize,
    },
    Delete {
        key: u8,
        told: usize,
    },
    /// A new list, in pages of this size.
    List {
        page: usize,
    },
}

fn gvk() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

fn object(key: u8, state: State) -> CachedObject {
    let namespace = ["a", "a-b", "b"][usize::from(key) % 3];
    let json = json!({"metadata": {
        "name": format!("o{key}"), "namespace": namespace,
        "uid": format!("u{}", state.uid), "resourceVersion": state.version.to_string(),
    }});
    CachedObject::new(RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap())
}

/// The state an object was made from.
fn state_of(object: &CachedObject) -> (ObjectKey, State) {
    let uid = object.uid().to_string()[1..].parse().unwrap();
    let version = object.version().to_string().parse().unwrap();
    (object.key().clone(), State { uid, version })
}

struct Bench {
    server: Server,
    store: Store,
    /// What somebody knows who sees only changes.
    follower: BTreeMap<ObjectKey, State>,
    lists: u32,
    next_uid: u8,
}

impl Bench {
    fn new() -> Self {
        Self {
            server: Server::default(),
            store: Store::default(),
            follower: BTreeMap::new(),
            lists: 0,
            next_uid: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Put { key, told } => {
                self.server.version += 1;
                let version = self.server.version;
                let uid = self.server.objects.get(&key).map(|state| state.uid);
                let uid = uid.unwrap_or_else(|| {
                    self.next_uid += 1;
                    self.next_uid
                });
                let state = State { uid, version };
                self.server.objects.insert(key, state);
                self.tell(told, || Delta::Present(object(key, state)));
            }
            Step::Delete { key, told } => {
                let Some(mut state) = self.server.objects.remove(&key) else {
                    return;
                };
                self.server.version += 1;
                state.version = self.server.version;
                self.tell(told, || Delta::Gone(object(key, state)));
            }
            Step::List { page } => self.list(page),
        }
    }

    fn tell(&mut self, times: usize, delta: impl Fn() -> Delta) {
        let deltas = (0..times).map(|_| delta()).collect();
        let changes = self.store.apply(deltas);
        self.take(&changes);
    }

    fn list(&mut self, page: usize) {
        let listing = Listing::after(self.lists, self.lists == 0);
        self.lists += 1;
        let unchanged: BTreeSet<_> = self.follower.clone().into_iter().collect();
        let all: Vec<CachedObject> = self
            .server
            .objects
            .iter()
            .map(|(key, state)| object(*key, *state))
            .collect();
        let mut told = 0;
        let mut rest = all.into_iter().peekable();
        while rest.peek().is_some() {
            let page = rest.by_ref().take(page).collect();
            let changes = self.store.list_page(listing, page);
            told += changes.len();
            self.take(&changes);
        }
        let changes = self.store.end_listing(listing);
        self.take(&changes);
        let expected: BTreeMap<ObjectKey, State> = self
            .server
            .objects
            .iter()
            .map(|(key, state)| state_of(&object(*key, *state)))
            .collect();
        assert_eq!(
            self.follower, expected,
            "a list makes the cache equal to the server"
        );
        let same = expected
            .iter()
            .filter(|(k, s)| unchanged.contains(&((*k).clone(), **s)))
            .count();
        assert!(
            told <= 2 * (expected.len() - same),
            "what did not change is not told"
        );
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
            }
        }
        self.check();
    }

    /// What is shown is what was told.
    fn check(&self) {
        let snapshot = self.store.snapshot();
        let shown: BTreeMap<ObjectKey, State> =
            snapshot.iter().map(|object| state_of(object)).collect();
        assert_eq!(shown, self.follower);
        assert!(snapshot.is_sorted_by_key(|object| object.key().clone()));
        assert_eq!(
            self.store.bytes(),
            snapshot.iter().map(|object| object.bytes()).sum::<usize>()
        );
        assert_eq!(self.store.len(), snapshot.len());
        let in_a = self.store.snapshot_in("a");
        let expected = self
            .follower
            .keys()
            .filter(|key| key.namespace() == Some("a"))
            .count();
        assert_eq!(in_a.len(), expected);
        for (key, state) in &self.follower {
            assert_eq!(state_of(&self.store.get(key).unwrap()).1, *state);
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let told = || prop_oneof![6 => Just(1_usize), 1 => Just(0), 1 => Just(2)];
    prop_oneof![
        6 => (0_u8..7, told()).prop_map(|(key, told)| Step::Put { key, told }),
        4 => (0_u8..7, told()).prop_map(|(key, told)| Step::Delete { key, told }),
        2 => (1_usize..4).prop_map(|page| Step::List { page }),
    ]
}

proptest! {
    #[test]
    fn the_store_shows_what_it_tells_and_a_list_repairs_whatever_the_watch_missed(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut bench = Bench::new();
        for step in &steps {
            bench.step(step);
        }
        bench.list(2);
    }
}

fn changes(store: &Store, deltas: Vec<Delta>) -> Vec<String> {
    let text = |change: &Change| match change {
        Change::Added { object, .. } => format!("added {}", object.version()),
        Change::Updated { old, new } => format!("updated {} {}", old.version(), new.version()),
        Change::Deleted { last } => format!("deleted {}", last.version()),
    };
    store.apply(deltas).iter().map(text).collect()
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
    let listing = Listing::after(0, false);
    let told = store.list_page(listing, vec![object(0, State { uid: 1, version: 7 })]);
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

fn raw(json: &serde_json::Value) -> CachedObject {
    CachedObject::new(RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap())
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
