//! What this process wrote itself, beside lists and watches that may be older or newer.

use std::time::Duration;

use super::*;

/// The number of a write that was sent after all others.
pub(super) const LAST: u64 = u64::MAX;

pub(super) fn state(uid: u8, version: u64) -> RawObject {
    object(0, TestState { uid, version })
}

/// Reads a list that begins and ends at this moment.
pub(super) fn list(store: &Store, version: u64, objects: Vec<RawObject>) -> Vec<Change> {
    let listing = store.begin_listing(false, Content::Whole, None);
    let mut changes = store.list_page(&listing, objects);
    changes.extend(store.end_listing(&listing, &version.into()));
    changes
}

/// Returns the version of the object that is shown.
pub(super) fn shown(store: &Store) -> Option<u64> {
    let object = store.get(state(1, 1).key())?;
    object.version().to_string().parse().ok()
}

#[test]
fn a_write_of_ours_is_shown_immediately_and_its_echo_changes_nothing() {
    let store = Store::default();
    let state = |version| state(1, version);
    changes(&store, vec![Delta::Present(state(1))]);
    let reported = store.wrote(state(7), Content::Whole, LAST);
    assert!(matches!(&reported[..], [Change::Updated { .. }]));
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
    changes(&store, vec![Delta::Present(state(1, 1))]);
    let key = state(1, 1).key().clone();
    assert_eq!(store.deleted(&key, state(1, 1).uid(), None, LAST).len(), 1);
    let late = vec![Delta::Present(state(1, 2)), Delta::Deleted(state(1, 3))];
    assert_eq!(changes(&store, late), Vec::<String>::new());
    assert_eq!(
        changes(&store, vec![Delta::Present(state(2, 4))]),
        ["added 4"]
    );
}

#[test]
fn a_write_that_changes_nothing_leaves_the_one_before_fenced() {
    let store = Store::default();
    list(&store, 1, vec![state(1, 1)]);
    let listing = store.begin_listing(false, Content::Whole, None);
    store.wrote(state(1, 7), Content::Whole, LAST);
    assert!(store.wrote(state(1, 7), Content::Whole, LAST).is_empty());
    assert!(store.list_page(&listing, vec![state(1, 1)]).is_empty());
    store.end_listing(&listing, &3.into());
    assert_eq!(shown(&store), Some(7));
}

#[tokio::test(start_paused = true)]
async fn watch_after_a_silent_one_revives_no_deleted_object() {
    let store = Store::default();
    list(&store, 1, vec![state(1, 1)]);
    assert!(!store.watch_opened(None));
    store.deleted(state(1, 1).key(), state(1, 1).uid(), None, LAST);
    tokio::time::advance(Duration::from_secs(90)).await;
    assert!(!store.watch_opened(None));
    let late = || vec![Delta::Present(state(1, 2)), Delta::Deleted(state(1, 3))];
    assert_eq!(changes(&store, late()), Vec::<String>::new());
    // A late one goes on from there; the server has been restored, and has the object again.
    tokio::time::advance(Duration::from_secs(600)).await;
    changes(
        &store,
        vec![Delta::Present(object(1, TestState { uid: 9, version: 4 }))],
    );
    assert!(!store.watch_opened(None));
    assert_eq!(changes(&store, late()), ["added 2", "deleted 3"]);
}

#[test]
fn where_versions_do_not_compare_the_server_s_state_is_used() {
    let store = Store::default();
    let state = |version: &str| {
        let json = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": version}});
        RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap()
    };
    store.wrote(state("x9"), Content::Whole, LAST);
    assert_eq!(
        changes(&store, vec![Delta::Present(state("x8"))]),
        ["updated x9 x8"]
    );
}

#[test]
fn an_answer_whose_version_does_not_compare_is_left_to_the_watch() {
    let store = Store::default();
    let state = |version: &str| {
        let json = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": version}});
        RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap()
    };
    changes(&store, vec![Delta::Present(state("x7"))]);
    assert!(store.wrote(state("x6"), Content::Whole, LAST).is_empty());
}

#[test]
fn a_list_from_before_a_write_of_ours_does_not_undo_it() {
    let store = Store::default();
    let state = |key, version| object(key, TestState { uid: key, version });
    let listing = store.begin_listing(false, Content::Whole, None);
    store.list_page(&listing, vec![state(1, 5)]);
    store.wrote(state(1, 11), Content::Whole, LAST);
    store.wrote(state(2, 12), Content::Whole, LAST);
    let reported = store.list_page(&listing, vec![state(1, 9)]);
    assert!(reported.is_empty());
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
async fn a_list_that_began_before_a_write_does_not_undo_it_however_long_it_takes() {
    let store = Store::default();
    let state = |key, version| object(key, TestState { uid: key, version });
    changes(&store, vec![Delta::Present(state(1, 5))]);
    let listing = store.begin_listing(false, Content::Whole, None);
    store.list_page(&listing, vec![state(0, 4)]);
    store.wrote(state(1, 11), Content::Whole, LAST);
    store.wrote(state(2, 12), Content::Whole, LAST);
    tokio::time::advance(Duration::from_secs(3600)).await;
    // The last page of a list at 10.
    assert!(store.list_page(&listing, vec![state(1, 5)]).is_empty());
    assert!(store.end_listing(&listing, &10.into()).is_empty());
    assert_eq!(*store.get(state(1, 5).key()).unwrap().version(), 11.into());
}

#[test]
fn a_list_that_began_after_a_write_is_used_immediately() {
    let store = Store::default();
    changes(&store, vec![Delta::Present(state(1, 900))]);
    store.wrote(state(1, 1000), Content::Whole, LAST);
    let other = object(
        1,
        TestState {
            uid: 2,
            version: 1001,
        },
    );
    store.wrote(other.clone(), Content::Whole, LAST);
    // The server was restored from a backup in which one object is older, and the other is not.
    let reported = list(&store, 7, vec![state(1, 7)]);
    assert!(matches!(
        &reported[..],
        [Change::Updated { .. }, Change::Deleted { .. }]
    ));
    assert_eq!((shown(&store), store.len()), (Some(7), 1));
    let reported = changes(&store, vec![Delta::Present(state(1, 8))]);
    assert_eq!(reported, ["updated 7 8"], "its events are news");
}

#[test]
fn what_we_deleted_is_back_if_a_list_that_began_later_shows_it() {
    let store = Store::default();
    changes(&store, vec![Delta::Present(state(1, 900))]);
    let key = state(1, 1).key().clone();
    store.deleted(&key, state(1, 1).uid(), None, LAST);
    assert_eq!(list(&store, 7, vec![state(1, 7)]).len(), 1);
    let reported = changes(&store, vec![Delta::Present(state(1, 8))]);
    assert_eq!(reported, ["updated 7 8"]);
}

#[test]
fn a_list_in_progress_does_not_show_what_we_deleted_before_it_came() {
    let store = Store::default();
    let listing = store.begin_listing(true, Content::Whole, None);
    let deleted = state(1, 5);
    assert!(
        store
            .deleted(deleted.key(), deleted.uid(), None, LAST)
            .is_empty()
    );
    assert!(store.list_page(&listing, vec![deleted]).is_empty());
    store.end_listing(&listing, &5.into());
    // Nor does the watch that goes on from there.
    assert!(changes(&store, vec![Delta::Present(state(1, 6))]).is_empty());
    assert!(changes(&store, vec![Delta::Deleted(state(1, 7))]).is_empty());
    let reported = changes(&store, vec![Delta::Present(state(2, 8))]);
    assert_eq!(reported, ["added 8"], "its successor is another object");
}

#[test]
fn what_left_the_selection_by_our_write_and_came_back_by_our_write_is_shown() {
    let store = Store::default();
    list(&store, 1, vec![state(1, 1)]);
    assert_eq!(store.left(&state(1, 101)).len(), 1);
    assert_eq!(shown(&store), None);
    assert_eq!(store.wrote(state(1, 102), Content::Whole, LAST).len(), 1);
    assert_eq!(shown(&store), Some(102));
    // Only now the watch reports that it left.
    let late = vec![
        Delta::Present(state(1, 100)),
        Delta::Deleted(state(1, 101)),
        Delta::Present(state(1, 102)),
    ];
    assert_eq!(changes(&store, late), Vec::<String>::new());
    assert_eq!(shown(&store), Some(102));
}

#[test]
fn what_left_the_selection_by_our_write_is_shown_by_the_next_list_that_has_it() {
    let store = Store::default();
    list(&store, 1, vec![state(1, 1)]);
    store.left(&state(1, 101));
    assert_eq!(list(&store, 103, vec![state(1, 102)]).len(), 1);
    assert_eq!(shown(&store), Some(102));
}

#[test]
fn what_left_the_selection_by_our_write_does_not_come_back_by_older_news() {
    let store = Store::default();
    list(&store, 1, vec![state(1, 1)]);
    let listing = store.begin_listing(false, Content::Whole, None);
    store.left(&state(1, 101));
    assert!(store.list_page(&listing, vec![state(1, 1)]).is_empty());
    store.end_listing(&listing, &100.into());
    assert!(store.wrote(state(1, 99), Content::Whole, LAST).is_empty());
    assert!(changes(&store, vec![Delta::Present(state(1, 100))]).is_empty());
    assert_eq!(shown(&store), None);
}

#[test]
fn what_we_deleted_takes_its_predecessor_along_and_leaves_its_successor() {
    let store = Store::default();
    list(&store, 1, vec![state(1, 1)]);
    let deleted = state(2, 3);
    let (key, first) = (deleted.key(), CachedObject::new(state(1, 1)));
    // Whether this one came before or after is not known.
    assert!(store.deleted(key, deleted.uid(), None, LAST).is_empty());
    assert_eq!(
        store.deleted(key, deleted.uid(), Some(&first), LAST).len(),
        1
    );
    let late = vec![
        Delta::Present(state(1, 2)),
        Delta::Deleted(state(1, 2)),
        Delta::Present(state(2, 3)),
        Delta::Deleted(state(2, 4)),
    ];
    assert_eq!(changes(&store, late), Vec::<String>::new());
    assert_eq!(
        changes(&store, vec![Delta::Present(state(3, 5))]),
        ["added 5"]
    );
    assert!(
        store
            .deleted(key, deleted.uid(), Some(&first), LAST)
            .is_empty()
    );
}

#[test]
fn a_late_answer_to_a_deletion_does_not_hide_what_was_written_since() {
    let store = Store::default();
    list(&store, 1, vec![state(1, 1)]);
    let (key, first) = (state(1, 1).key().clone(), CachedObject::new(state(1, 1)));
    // Deleted at 2, created again at 3, and not selected since 4.
    store.wrote(state(2, 3), Content::Whole, LAST);
    store.left(&state(2, 4));
    store.deleted(&key, first.uid(), Some(&first), LAST);
    let late = vec![Delta::Deleted(state(1, 2)), Delta::Present(state(2, 3))];
    assert_eq!(changes(&store, late), Vec::<String>::new());
}

#[test]
fn a_late_answer_does_not_take_away_what_came_back_meanwhile() {
    let store = Store::default();
    list(&store, 1, vec![state(1, 1)]);
    let news = vec![Delta::Deleted(state(1, 101)), Delta::Present(state(1, 102))];
    changes(&store, news);
    assert!(store.left(&state(1, 101)).is_empty());
    assert_eq!(shown(&store), Some(102));
}

#[test]
fn an_answer_that_comes_after_the_end_of_the_object_does_not_bring_it_back() {
    let store = Store::default();
    list(&store, 4, Vec::new());
    let reported = vec![Delta::Present(state(1, 5)), Delta::Present(state(1, 6))];
    changes(&store, reported);
    changes(&store, vec![Delta::Deleted(state(1, 7))]);
    assert!(store.wrote(state(1, 6), Content::Whole, LAST).is_empty());
    // Nor one that a list swept away, nor one that no list ever mentioned.
    let swept = || object(1, TestState { uid: 2, version: 8 });
    changes(&store, vec![Delta::Present(swept())]);
    assert_eq!(list(&store, 9, Vec::new()).len(), 1);
    assert!(store.wrote(swept(), Content::Whole, LAST).is_empty());
    let unseen = object(2, TestState { uid: 3, version: 9 });
    assert!(store.wrote(unseen, Content::Whole, LAST).is_empty());
    let created = object(
        2,
        TestState {
            uid: 4,
            version: 10,
        },
    );
    assert_eq!(store.wrote(created, Content::Whole, LAST).len(), 1);
}

#[test]
fn what_another_selection_had_reached_says_nothing_of_a_creation() {
    let store = Store::default();
    let others = Selection::all().with_labels("app=y".parse().unwrap());
    store.restrict(&others);
    list(&store, 9, Vec::new());
    store.restrict(&others);
    assert!(store.wrote(state(1, 7), Content::Whole, LAST).is_empty());
    store.restrict(&Selection::all());
    assert_eq!(store.wrote(state(1, 7), Content::Whole, LAST).len(), 1);
}

#[test]
fn a_creation_is_shown_though_another_namespace_is_further_on() {
    let store = Store::default();
    let listed = |namespace: &str, version: u64| {
        let listing = store.begin_listing(true, Content::Whole, Some(namespace.into()));
        store.end_listing(&listing, &version.into());
    };
    listed("a", 100);
    listed("b", 40);
    // Every third of these objects is in the same namespace.
    let of = |key| {
        object(
            key,
            TestState {
                uid: key,
                version: 50,
            },
        )
    };
    assert!(store.wrote(of(0), Content::Whole, LAST).is_empty());
    assert_eq!(store.wrote(of(2), Content::Whole, LAST).len(), 1);
}

#[test]
fn what_a_watch_reports_while_a_list_is_read_is_not_all_that_happened() {
    let store = Store::default();
    list(&store, 10, Vec::new());
    let listing = store.begin_listing(false, Content::Whole, None);
    let gone = object(
        1,
        TestState {
            uid: 2,
            version: 30,
        },
    );
    store.apply(vec![Delta::Deleted(gone)], Content::Whole);
    assert_eq!(store.wrote(state(1, 20), Content::Whole, LAST).len(), 1);
    store.list_page(&listing, vec![state(1, 20)]);
    store.end_listing(&listing, &31.into());
    assert_eq!(shown(&store), Some(20));
}

#[test]
fn a_list_of_the_past_undoes_no_write() {
    let store = Store::default();
    store.wrote(state(1, 11), Content::Whole, LAST);
    let deleted = object(1, TestState { uid: 2, version: 9 });
    store.deleted(deleted.key(), deleted.uid(), None, LAST);
    let listing = store
        .begin_listing(true, Content::Whole, None)
        .of_the_past();
    assert!(
        store
            .list_page(&listing, vec![state(1, 5), deleted])
            .is_empty()
    );
    assert!(store.end_listing(&listing, &10.into()).is_empty());
    assert_eq!(shown(&store), Some(11));
}

#[test]
fn an_answer_that_was_read_as_metadata_gets_its_content_from_the_watch() {
    let store = Store::default();
    list(&store, 1, vec![state(1, 1)]);
    store.wrote(state(1, 2), Content::MetadataOnly, LAST);
    let has_content = || store.get(state(1, 1).key()).unwrap().has_content();
    assert!(!has_content());
    assert!(changes(&store, vec![Delta::Present(state(1, 2))]).is_empty());
    assert!(has_content());
}

#[test]
fn a_creation_answered_after_a_later_deletion_of_the_name_is_gone() {
    let state = |uid, version| object(0, TestState { uid, version });
    let store = Store::default();
    store.end_listing(&store.begin_listing(true, Content::Whole, None), &1.into());
    let key = state(1, 2).key().clone();
    // Others deleted what the first write created, and created another, which the second write deleted.
    let second = state(2, 4);
    store.deleted(&key, second.uid(), None, 2);
    let listing = store.begin_listing(false, Content::Whole, None);
    assert!(store.wrote(state(1, 2), Content::Whole, 1).is_empty());
    store.end_listing(&listing, &5.into());
    assert!(store.is_empty());
    // One that was sent later is another object.
    assert_eq!(store.wrote(state(3, 6), Content::Whole, 3).len(), 1);
}

/// Versions of aggregated API servers need not be numbers.
#[test]
fn list_does_not_undo_a_later_creation_whose_versions_are_no_numbers() {
    let store = Store::default();
    let listing = store.begin_listing(true, Content::Whole, None);
    let json = json!({"metadata": {"name": "a", "uid": "1", "resourceVersion": "opaque"}});
    let object = RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap();
    let key = object.key().clone();
    store.wrote(object, Content::Whole, LAST);
    let changes = store.end_listing(&listing, &ResourceVersion::new("other"));
    assert!(changes.is_empty() && store.get(&key).is_some());
}
