//! Queries over stores that are large enough for indexes.

use lariat_core::Uid;

use super::*;
use crate::selection::Selection;

fn pods(count: usize) -> Store {
    let store = Store::default();
    let pod = |number: usize| {
        let json = json!({"metadata": {
            "name": format!("p{number:05}"), "namespace": format!("n{}", number % 10),
            "uid": format!("u{number}"), "resourceVersion": "1",
            "labels": {"app": format!("a{}", number % 50), "zone": format!("z{}", number % 3)},
            "ownerReferences": [{"uid": format!("rs{}", number % 100)}],
        }});
        Delta::Present(RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap())
    };
    store.apply((0..count).map(pod).collect(), Content::Whole);
    store
}

/// How many objects a query looked at is not visible; whether it made an index is.
fn label_index(store: &Store, label: &str) -> bool {
    store.kept.objects.state().indexes.labels.has(label)
}

#[test]
fn an_index_of_a_label_is_made_by_the_first_query_that_needs_it() {
    let store = pods(1000);
    assert!(!label_index(&store, "app"));
    let query = Query::all().labels("app in (a1,a2),zone=z1".parse().unwrap());
    let found = store.select(&query);
    assert!(label_index(&store, "app"));
    assert!(!label_index(&store, "zone"), "one that helps is enough");
    let expected = (0..1000)
        .filter(|n| (n % 50 == 1 || n % 50 == 2) && n % 3 == 1)
        .count();
    assert_eq!((found.len(), store.count(&query)), (expected, expected));
    assert!(found.is_sorted_by_key(|object| object.key().clone()));
}

#[test]
fn small_kinds_and_selectors_without_values_need_no_index() {
    let small = pods(100);
    assert_eq!(
        small.count(&Query::all().labels("app=a1".parse().unwrap())),
        2
    );
    assert!(!label_index(&small, "app"));
    let store = pods(1000);
    assert_eq!(
        store.count(&Query::all().labels("app notin (a1),!gone".parse().unwrap())),
        980
    );
    assert!(!label_index(&store, "app"));
}

#[test]
fn first_eight_labels_have_an_index() {
    let store = pods(300);
    let count = |selector: &str| store.count(&Query::all().labels(selector.parse().unwrap()));
    for number in 0..9 {
        assert_eq!(count(&format!("l{number}=x")), 0);
    }
    assert!((0..8).all(|number| label_index(&store, &format!("l{number}"))));
    assert!(!label_index(&store, "l8"));
    assert_eq!(count("app=a1"), 6, "without an index too");
}

#[test]
fn owners_and_namespaces_narrow_each_other() {
    let store = pods(1000);
    let owner = Uid::new("rs7");
    assert_eq!(store.count(&Query::owned_by(&owner)), 10);
    assert_eq!(store.count(&Query::owned_by(&owner).namespace("n7")), 10);
    assert_eq!(store.count(&Query::owned_by(&owner).namespace("n8")), 0);
    assert_eq!(store.count(&Query::in_namespace("n1")), 100);
    assert_eq!(
        store.count(&Query::in_namespace("n")),
        0,
        "a namespace is not a prefix"
    );
}

#[test]
fn an_index_by_a_function_follows_what_changes_and_survives_a_panic() {
    let store = pods(10);
    let by_version = |object: &Arc<CachedObject>| {
        assert!(object.key().name() != "p00003", "no");
        vec![object.version().to_string(), object.version().to_string()]
    };
    store
        .add_index(&gvk(), "version", Arc::new(by_version))
        .unwrap();
    let count = |value: &str| store.count_by_index(&gvk(), "version", value).unwrap();
    assert_eq!((count("1"), count("2")), (9, 0));
    let json = json!({"metadata": {"name": "p00004", "namespace": "n4", "uid": "u4",
        "resourceVersion": "2"}});
    let changed = RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap();
    store.apply(vec![Delta::Present(changed)], Content::Whole);
    assert_eq!((count("1"), count("2")), (8, 1));
    store.restrict(&Selection::all().in_namespaces(["none"]));
    assert_eq!((count("1"), count("2")), (0, 0));
    let again = store.add_index(&gvk(), "version", Arc::new(|_: &_| Vec::new()));
    assert!(
        again
            .unwrap_err()
            .to_string()
            .contains("has an index \"version\" already")
    );
    let unknown = store.by_index(&gvk(), "other", "x").unwrap_err();
    assert!(
        unknown.to_string().contains("no index \"other\""),
        "{unknown}"
    );
}

#[test]
fn many_objects_are_found_by_their_keys_as_few_are() {
    let store = pods(1000);
    let labels = "app in (a1,a2,a3,a4,a5,a6,a7,a8)";
    let query = Query::all().labels(labels.parse().unwrap());
    for _ in 0..2 {
        let found = store.select(&query);
        assert_eq!((found.len(), store.count(&query)), (160, 160));
        assert!(found.is_sorted_by_key(|object| object.key().clone()));
        assert!(found.iter().all(|object| query.matches(object)));
    }
    assert!(label_index(&store, "app"));
}
