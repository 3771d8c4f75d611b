//! The store against a naive reference: an API server with all of its states, a subscriber that sees only
//! changes, and answers to writes of this process that come at any time.

mod bench;
mod server;

use proptest::prelude::*;

use super::super::{Content, Storage};
use bench::{Bench, KEYS};
use server::Op;

#[derive(Debug, Clone)]
enum ModelStep {
    Act(Act),
    /// Another client does something; `reported` says how often the watch reports it.
    Theirs {
        key: u8,
        op: Op,
        reported: usize,
    },
    /// The watch reports what it has not reported yet.
    CatchUp,
    /// The watch reports nothing until the next list.
    CutWatch,
    /// A new list, in pages of this size, and what happens meanwhile.
    List {
        page: usize,
        acts: Vec<(Moment, Act)>,
    },
    /// A list of a stale server, this many percent of the history ago; the watch goes on from there.
    StaleList {
        age: u8,
    },
    /// The watch reports everything, and every answer comes.
    Settle,
    /// So much of each object is read from now on.
    Content(Content),
    Backup,
    /// The server is set back to the backup.
    Restore,
    Store(Storage),
}

/// What happens without the watch reporting it immediately.
#[derive(Debug, Clone, Copy)]
enum Act {
    Theirs {
        key: u8,
        op: Op,
    },
    /// This process does something, and is answered now or later.
    Ours {
        key: u8,
        op: Op,
        is_late: bool,
    },
    /// A late answer comes.
    ///
    /// It may have been read before more was requested.
    Answer {
        number: usize,
        as_read: Option<Content>,
    },
    /// The filter keeps the content of other keys from now on: a bit for each says whether it does.
    Filter(u8),
}

/// When something happens while a list is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The list is requested; it shows this.
    Requested,
    /// The list is on its way, and older than this.
    Answered,
    FirstPage,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Put),
        2 => Just(Op::Leave),
        2 => Just(Op::Enter),
        2 => Just(Op::Delete),
    ]
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![3 => Just(Content::Whole), 1 => Just(Content::MetadataOnly)]
}

fn act() -> impl Strategy<Value = Act> {
    let as_read = prop::option::weighted(0.2, content());
    prop_oneof![
        2 => (0..KEYS, op()).prop_map(|(key, op)| Act::Theirs { key, op }),
        5 => (0..KEYS, op(), prop::bool::weighted(0.3))
            .prop_map(|(key, op, is_late)| Act::Ours { key, op, is_late }),
        2 => (0_usize..8, as_read).prop_map(|(number, as_read)| Act::Answer { number, as_read }),
        1 => (0_u8..1 << KEYS).prop_map(Act::Filter),
    ]
}

fn step() -> impl Strategy<Value = ModelStep> {
    let reported = prop_oneof![6 => Just(1_usize), 1 => Just(0), 1 => Just(2)];
    let moment = prop_oneof![
        Just(Moment::Requested),
        Just(Moment::Answered),
        Just(Moment::FirstPage)
    ];
    let storage = prop_oneof![
        Just(Storage::Plain),
        Just(Storage::Compressed),
        Just(Storage::Decoded),
        Just(Storage::Auto)
    ];
    prop_oneof![
        12 => act().prop_map(ModelStep::Act),
        6 => (0..KEYS, op(), reported).prop_map(|(key, op, reported)| ModelStep::Theirs { key, op, reported }),
        3 => Just(ModelStep::CatchUp),
        1 => Just(ModelStep::CutWatch),
        3 => (1_usize..4, prop::collection::vec((moment, act()), 0..5))
            .prop_map(|(page, acts)| ModelStep::List { page, acts }),
        1 => (0_u8..50).prop_map(|age| ModelStep::StaleList { age }),
        1 => Just(ModelStep::Settle),
        1 => content().prop_map(ModelStep::Content),
        1 => Just(ModelStep::Backup),
        1 => Just(ModelStep::Restore),
        1 => storage.prop_map(ModelStep::Store),
    ]
}

proptest! {
    /// A deletion is published only if an event, a list or an answer says so, and the versions of an object only grow,
    /// but for a restore and lists of a stale server.
    #[test]
    fn the_store_shows_what_it_publishes_and_never_less_than_was_written(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut bench = Bench::new();
        for step in &steps {
            bench.step(step);
        }
        bench.step(&ModelStep::CatchUp);
        bench.step(&ModelStep::List { page: 2, acts: Vec::new() });
        bench.step(&ModelStep::Settle);
    }
}
