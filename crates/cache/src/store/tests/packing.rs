//! When recently changed objects are packed.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A state of an object, a few kilobytes long.
fn state(number: u32, version: u64) -> RawObject {
    let object = pod(number, true);
    let mut json: serde_json::Value = serde_json::from_slice(object.json()).unwrap();
    json["metadata"]["resourceVersion"] = version.to_string().into();
    json["status"] = json!({"phase": format!("phase {version}")});
    RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap()
}

/// A store that packs this many objects.
fn packing(objects: u32) -> Store {
    let store = Store::default();
    store.set_storage(Storage::Compressed);
    let listing = store.begin_listing(true, Content::Whole, None);
    let page = (0..objects).map(|number| pod(number, true));
    store.list_page(&listing, page.collect());
    store.end_listing(&listing, &1.into());
    store.train();
    assert!(store.is_packed());
    store
}

fn key(number: u32) -> ObjectKey {
    pod(number, false).key().clone()
}

fn put(store: &Store, number: u32, version: u64) {
    let changed = vec![Delta::Present(state(number, version))];
    store.apply(changed, Content::Whole);
}

/// Returns whether an object takes as many bytes as its JSON.
fn is_plain(store: &Store, number: u32) -> bool {
    let object = store.get(&key(number)).unwrap();
    object.bytes() > object.json_bytes()
}

fn counted(store: &Store) -> usize {
    store.snapshot().iter().map(|object| object.bytes()).sum()
}

#[test]
fn what_has_changed_stays_plain_until_nothing_comes() {
    let store = packing(100);
    put(&store, 7, 10);
    let object = store.get(&key(7)).unwrap();
    let decoded = object.decode::<serde_json::Value>(&gvk()).unwrap();
    assert!(store.has_waiting() && is_plain(&store, 7) && !is_plain(&store, 8));
    store.pack_waiting(Age::Old);
    assert!(is_plain(&store, 7), "few enough wait");
    let json = object.json().unwrap();
    store.pack_waiting(Age::All);
    assert!(!store.has_waiting() && !is_plain(&store, 7));
    // It is the same object, with what was decoded from it.
    let after = store.get(&key(7)).unwrap();
    assert!(Arc::ptr_eq(&object, &after));
    assert_eq!(json, after.json().unwrap());
    let again = after.decode::<serde_json::Value>(&gvk()).unwrap();
    assert!(Arc::ptr_eq(&decoded, &again));
    assert_eq!(store.bytes(), counted(&store));
}

#[test]
fn at_rest_what_has_changed_takes_as_many_bytes_as_what_was_listed() {
    const OBJECTS: u32 = 500;
    let store = packing(OBJECTS);
    let listed = store.bytes();
    let plain: usize = store.snapshot().iter().map(|pod| pod.json_bytes()).sum();
    assert!(listed < plain / 2, "{listed} of {plain}");
    let found = store.overhead();
    for version in [10, 11] {
        for number in 0..OBJECTS {
            put(&store, number, version);
        }
        store.pack_waiting(Age::Old);
        assert!(
            store.bytes() < listed + 512 * 1024 + listed / 10,
            "{version}"
        );
    }
    store.pack_waiting(Age::All);
    assert_eq!(store.bytes(), counted(&store));
    // A status of a few bytes came to each.
    let rest = store.bytes();
    assert!(rest < listed + 48 * OBJECTS as usize, "{rest} of {listed}");
    assert_eq!(store.overhead(), found, "changes of known objects add none");
    let mut remembered = store.table_sizes();
    let waiting = remembered.find(|each| each.name == "objects to pack");
    assert_eq!(waiting.map(|each| each.entries), Some(0));
}

#[test]
fn finding_an_object_takes_few_bytes() {
    const OBJECTS: u64 = 10_000;
    let store = Store::default();
    store.set_storage(Storage::Plain);
    // In an order that has nothing to do with their names.
    for batch in 0..100 {
        let numbers = (0..OBJECTS / 100).map(|each| (batch * 100 + each) * 7_919 % OBJECTS);
        let came = numbers.map(|number| {
            let json = format!(
                r#"{{"metadata":{{"name":"pod-{number}","uid":"u{number}","resourceVersion":"1"}}}}"#
            );
            Delta::Present(RawObject::parse(json.as_bytes(), &gvk()).unwrap())
        });
        store.apply(came.collect(), Content::Whole);
    }
    assert_eq!(store.len() as u64, OBJECTS);
    let each = store.overhead() as u64 / OBJECTS;
    assert!(each <= 40, "{each} bytes");
}

#[test]
fn a_state_that_was_replaced_is_not_packed() {
    let store = packing(100);
    put(&store, 7, 10);
    let first = store.get(&key(7)).unwrap();
    put(&store, 7, 11);
    store.pack_waiting(Age::All);
    assert!(
        first.bytes() > first.json_bytes(),
        "it was packed for nothing"
    );
    assert!(!is_plain(&store, 7));
    assert_eq!(store.bytes(), counted(&store));
}

#[test]
fn few_wait_however_many_change() {
    let store = packing(500);
    for number in 0..500 {
        put(&store, number, 10);
        store.pack_waiting(Age::Old);
        let writer = store.kept.writer.lock();
        assert!(writer.codec.waiting_bytes() <= 512 * 1024, "{number}");
        let (waiting, most) = writer.codec.waiting();
        assert!(waiting <= most);
    }
    assert!((0..250).all(|number| !is_plain(&store, number)));
    assert!(is_plain(&store, 499));
}

#[test]
fn kinds_that_are_kept_plain_have_nothing_to_pack() {
    let store = packing(100);
    put(&store, 1, 10);
    store.set_storage(Storage::Plain);
    store.pack_waiting(Age::All);
    assert!(!store.has_waiting() && is_plain(&store, 1));
    put(&store, 2, 10);
    assert!(!store.has_waiting());
    assert_eq!(store.bytes(), counted(&store));
}

#[derive(Debug, Clone)]
enum YoungStep {
    Put(u32),
    Delete(u32),
    Own(u32),
    PackOld,
    PackAll,
    Form(Storage),
}

fn step() -> impl Strategy<Value = YoungStep> {
    let number = 0..40_u32;
    let form = prop::sample::select(vec![Storage::Compressed, Storage::Plain, Storage::Auto]);
    prop_oneof![
        8 => number.clone().prop_map(YoungStep::Put),
        2 => number.clone().prop_map(YoungStep::Delete),
        2 => number.prop_map(YoungStep::Own),
        1 => Just(YoungStep::PackOld),
        1 => Just(YoungStep::PackAll),
        1 => form.prop_map(YoungStep::Form),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn packing_changes_neither_what_is_there_nor_what_is_counted(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let store = packing(100);
        let mut known: BTreeMap<u32, u64> = (0..100).map(|number| (number, 1)).collect();
        for (step, version) in steps.into_iter().zip(10..) {
            match step {
                YoungStep::Put(number) => {
                    put(&store, number, version);
                    known.insert(number, version);
                }
                YoungStep::Delete(number) => {
                    let gone = vec![Delta::Deleted(state(number, version))];
                    store.apply(gone, Content::Whole);
                    known.remove(&number);
                }
                YoungStep::Own(number) => {
                    store.wrote(state(number, version), Content::Whole, version);
                    known.insert(number, version);
                }
                YoungStep::PackOld => store.pack_waiting(Age::Old),
                YoungStep::PackAll => store.pack_waiting(Age::All),
                YoungStep::Form(storage) => store.set_storage(storage),
            }
            prop_assert_eq!(store.bytes(), counted(&store));
        }
        store.pack_waiting(Age::All);
        prop_assert!(!store.has_waiting());
        for number in 0..100 {
            let object = store.get(&key(number));
            let version = object.as_ref().map(|object| object.version().to_string());
            prop_assert_eq!(version, known.get(&number).map(u64::to_string));
            let Some(object) = object.filter(|_| known[&number] >= 10) else {
                continue;
            };
            let expected = state(number, known[&number]);
            prop_assert_eq!(&*object.json().unwrap(), expected.json());
        }
    }
}
