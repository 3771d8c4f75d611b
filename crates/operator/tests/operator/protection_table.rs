//! The table of protection: what becomes of an applied object, by its options and by what happens to it.

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::protection_bench::{Options, World};
use crate::protection_events as events;

/// The end states, by event and options.
///
/// The object is a ConfigMap that release 1 applied with the content 1. Release 2 wants the content 2, with the options
/// of the column: `keep`, `create_only`, `adopts`, `renamed` (`renamed_from` of the set, operator and reconciler) and
/// `replace` (`Immutable::Replace`, with a content that cannot be changed).
///
/// | cell | the object |
/// |---|---|
/// | new | is the same one, has the content 2 and the marks of release 2 |
/// | old | is the same one, has the content 1 and the marks of release 2 |
/// | anew | is another one, with the content 2 and the marks of release 2 |
/// | before | is the same one, has the content 1 and the marks of release 1 |
/// | gone | does not exist |
///
/// With `!` the last call of the reconciler has failed. Otherwise a further call writes nothing.
const TABLE: &str = "
event              |none    keep    create  k+c     adopts  k+a     c+a     k+c+a   renamed k+r     c+r     k+c+r   replace k+repl
set renamed        |new     new     old     old     new     new     old     old     new     new     old     old     anew    old!
operator renamed   |before! before! before! before! before! before! before! before! new     new     old     old     before! before!
reconciler renamed |new     new     old     old     new     new     old     old     new     new     old     old     anew    old!
recreated, orphans |before! before! before! before! new     new     old     old     before! before! before! before! before! before!
recreated          |anew    before! anew    before! anew    new     anew    old     anew    before! anew    before! anew    before!
recreated, stopped |before! before! before! before! new     new     old     old     before! before! before! before! before! before!
owner deleted      |gone    before  gone    before  gone    before  gone    before  gone    before  gone    before  gone    before
left the set       |gone    before  gone    before  gone    before  gone    before  gone    before  gone    before  gone    before
moved, gained      |new     new     old     old     new     new     old     old     new     new     old     old     anew    old!
moved, lost        |new     new     old     old     new     new     old     old     new     new     old     old     anew    old!
moved at run time  |new     new     old     old     new     new     old     old     new     new     old     old     anew    old!
keep added         |gone    new     gone    old     gone    new     gone    old     gone    new     gone    old     gone    old!
keep dropped       |gone    gone    gone    gone    gone    gone    gone    gone    gone    gone    gone    gone    gone    gone
keep by a stranger |gone    before  gone    before  gone    before  gone    before  gone    before  gone    before  gone    before
crash after record |anew    anew    anew    anew    anew    anew    anew    anew    anew    anew    anew    anew    anew    anew
crash after create |new     new     old     old     new     new     old     old     new     new     old     old     anew    old!
lease lost         |old     old     old     old     old     old     old     old     old     old     old     old     old     old   
cache of namespace |new     new     old     old     new     new     old     old     new     new     old     old     anew    old!
cache of selector  |new     new     old     old     new     new     old     old     new     new     old     old     anew    old!
partial owners     |before! before! before! before! before! before! before! before! before! before! before! before! before! before!
forbidden owners   |before! before! before! before! before! before! before! before! before! before! before! before! before! before!
dry run            |old     old     old     old     old     old     old     old     old     old     old     old     old     old!
guard              |old!    old!    old     old     old!    old!    old     old     old!    old!    old     old     old!    old!
";

type Event = for<'a> fn(&'a World, Options) -> BoxFuture<'a, String>;

/// Checks the cells of one line of the table.
async fn check(event: &str, act: Event) {
    let mut lines = TABLE.lines().filter(|line| !line.is_empty());
    let options: Vec<&str> = cells(lines.next().expect("a heading"));
    let line = lines.find(|line| line.split('|').next().unwrap_or_default().trim() == event);
    let expected = cells(line.expect("a line"));
    assert_eq!(options.len(), expected.len(), "{event}");
    let mut wrong = Vec::new();
    for (options, expected) in options.into_iter().zip(expected) {
        let world = World::new().await;
        let found = act(&world, Options::read(options)).await;
        if found != expected {
            let error = world.error.lock().take().unwrap_or_default();
            wrong.push(format!("{options}: {found}, not {expected}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{event}: {wrong:#?}");
}

fn cells(line: &str) -> Vec<&str> {
    let (_, cells) = line.split_once('|').expect("cells");
    cells.split_whitespace().collect()
}

macro_rules! events {
    ($($test:ident: $event:literal = $act:ident;)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $test() {
            check($event, |world, options| events::$act(world, options).boxed()).await;
        }
    )*};
}

events! {
    protection_holds_when_set_is_renamed: "set renamed" = set_renamed;
    protection_holds_when_operator_is_renamed: "operator renamed" = operator_renamed;
    protection_holds_when_reconciler_is_renamed: "reconciler renamed" = reconciler_renamed;
    protection_holds_when_owner_is_recreated_with_orphans: "recreated, orphans" = recreated_with_orphans;
    protection_holds_when_owner_is_recreated: "recreated" = recreated;
    protection_holds_when_owner_is_recreated_while_stopped: "recreated, stopped" = recreated_while_stopped;
    protection_holds_when_owner_is_deleted: "owner deleted" = owner_deleted;
    protection_holds_when_object_leaves_set: "left the set" = left_the_set;
    protection_holds_when_object_moves_to_earlier_set: "moved, gained" = moved_to_earlier_set;
    protection_holds_when_object_moves_to_later_set: "moved, lost" = moved_to_later_set;
    protection_holds_when_object_moves_at_run_time: "moved at run time" = moved_at_run_time;
    protection_holds_when_keep_is_added: "keep added" = keep_added;
    protection_ends_when_keep_is_dropped: "keep dropped" = keep_dropped;
    protection_ignores_keep_label_of_strangers: "keep by a stranger" = kept_by_stranger;
    protection_holds_when_process_ends_after_record: "crash after record" = crash_after_record;
    protection_holds_when_process_ends_after_create: "crash after create" = crash_after_create;
    protection_holds_when_lease_is_lost: "lease lost" = lease_lost;
    protection_holds_with_cache_of_namespace: "cache of namespace" = cache_of_namespace;
    protection_holds_with_cache_of_selector: "cache of selector" = cache_of_selector;
    protection_holds_with_partial_cache_of_owners: "partial owners" = partial_owners;
    protection_holds_when_owner_cannot_be_read: "forbidden owners" = forbidden_owners;
    protection_holds_in_dry_run: "dry run" = dry_run;
    protection_holds_when_guard_refuses: "guard" = guard;
}
