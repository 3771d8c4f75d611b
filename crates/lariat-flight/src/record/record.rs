//! A record of what happened.

use std::time::Duration;

use lariat_core::ResourceVersion;
use smallvec::SmallVec;

use super::codes::{
    CallEnd, CauseType, ChangeType, FactoryStep, LineType, NextStep, Stage, Urgency, VerdictType,
};
use super::end::End;
use crate::code::{Decoder, Encoder, Field};

/// Lanes by their numbers; [`u32::MAX`] is all of them.
pub type Lanes = SmallVec<[u32; 4]>;

/// Numbers of which only their owner knows the meaning.
pub type Numbers = SmallVec<[u32; 12]>;

/// What became of the lanes of a key.
pub type Verdicts = SmallVec<[LaneVerdict; 2]>;

/// A resource version: a number where it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version<'a> {
    /// As all API servers have it that pass conformance.
    Number(u64),
    /// Anything else; empty for none.
    Text(&'a str),
}

impl<'a> From<&'a ResourceVersion> for Version<'a> {
    fn from(version: &'a ResourceVersion) -> Self {
        match version.number() {
            Ok(number) => Self::Number(number),
            Err(text) => Self::Text(text),
        }
    }
}

impl From<Version<'_>> for ResourceVersion {
    fn from(version: Version<'_>) -> Self {
        match version {
            Version::Number(number) => number.into(),
            Version::Text(text) => Self::new(text),
        }
    }
}

impl std::fmt::Display for Version<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => std::fmt::Display::fmt(number, f),
            Self::Text("") => f.write_str("(none)"),
            Self::Text(text) => f.pad(text),
        }
    }
}

impl<'a> Field<'a> for Version<'a> {
    fn put(&self, to: &mut Encoder) {
        match self {
            Self::Number(number) => {
                to.byte(0);
                to.number(*number);
            }
            Self::Text(text) => {
                to.byte(1);
                text.put(to);
            }
        }
    }

    fn get(from: &mut Decoder<'a>) -> Option<Self> {
        match from.byte()? {
            0 => from.number().map(Self::Number),
            1 => <&str>::get(from).map(Self::Text),
            _ => None,
        }
    }
}

/// What became of one lane of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneVerdict {
    /// The lane; [`u32::MAX`] for the key as a whole.
    pub lane: u32,
    /// What became of it.
    pub what: VerdictType,
    /// When it comes again, if it does.
    pub after: Duration,
    /// How urgent it is then; none for as urgent as the key was.
    pub priority: Option<Urgency>,
}

impl Field<'_> for LaneVerdict {
    fn put(&self, to: &mut Encoder) {
        self.lane.put(to);
        self.what.put(to);
        if self.what != VerdictType::Done {
            self.after.put(to);
            self.priority.put(to);
        }
    }

    fn get(from: &mut Decoder<'_>) -> Option<Self> {
        let (lane, what) = (u32::get(from)?, VerdictType::get(from)?);
        let (after, priority) = match what {
            VerdictType::Done => (Duration::ZERO, None),
            _ => (Field::get(from)?, Field::get(from)?),
        };
        Some(Self {
            lane,
            what,
            after,
            priority,
        })
    }
}

/// Declares an enum of records with what writes and reads it: a tag, then the fields in their order.
///
/// A tag that is in use keeps its meaning and its fields; what is added gets the next.
macro_rules! records {
    (
        $(#[$meta:meta])*
        $name:ident<$life:lifetime> {
            $( $(#[$about:meta])* $tag:literal $variant:ident {
                $( $(#[$about_field:meta])* $field:ident: $type:ty, )*
            } )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $name<$life> {
            $( $(#[$about])* $variant { $( $(#[$about_field])* $field: $type, )* }, )*
        }

        impl<$life> Field<$life> for $name<$life> {
            fn put(&self, to: &mut Encoder) {
                match self {
                    $( Self::$variant { $( $field, )* } => {
                        to.byte($tag);
                        $( $field.put(to); )*
                    } )*
                }
            }

            fn get(from: &mut Decoder<$life>) -> Option<Self> {
                match from.byte()? {
                    $( $tag => Some(Self::$variant { $( $field: Field::get(from)?, )* }), )*
                    _ => None,
                }
            }
        }
    };
}

records! {
    /// Something that happened.
    Record<'a> {
        /// A factory started or stopped.
        1 Factory {
            /// Which of these.
            step: FactoryStep,
            /// How many workers each kind has that says nothing else; none if the factory is of caches.
            workers: Option<u32>,
        }
        /// A reflector read, or decided what to read next.
        2 Reflector {
            /// The kind.
            kind: &'a str,
            /// Which reflector of the process; a kind that is restricted to namespaces has several.
            reflector: u32,
            /// What it did.
            what: Reflected<'a>,
        }
        /// The cache of a kind changed.
        3 Store {
            /// The kind.
            kind: &'a str,
            /// How.
            what: Stored<'a>,
        }
        /// A work queue was used.
        4 Queue {
            /// The kind.
            kind: &'a str,
            /// Which queue of the process; the controller of a kind may end and begin again.
            queue: u32,
            /// What happened to it.
            what: Queued<'a>,
        }
        /// A controller called a handler, or its handlers changed.
        5 Controller {
            /// The kind.
            kind: &'a str,
            /// What it did.
            what: Controlled<'a>,
        }
    }
}

records! {
    /// What a reflector did.
    Reflected<'a> {
        /// It began.
        1 Began {
            /// The namespace it reads; empty for all.
            namespace: &'a str,
            /// Whether it loads by watches that begin with everything there is, where the server can do that.
            streams: bool,
            /// Whether the server needs not be asked for its history before a watch goes on.
            verified: bool,
            /// The version it goes on from.
            since: Option<Version<'a>>,
        }
        /// It begins to list.
        2 ListBegan {
            /// Whether in one piece, rather than in pages.
            whole: bool,
        }
        /// It begins a watch that begins with everything there is.
        3 StreamBegan {}
        /// It begins to watch.
        4 WatchBegan {
            /// The version it goes on from.
            since: Version<'a>,
        }
        /// It asks the server whether it has the history still from which the store was read.
        5 CheckBegan {
            /// The version the watch is to go on from.
            since: Version<'a>,
        }
        /// A page of a list came.
        6 Page {
            /// How many objects it has.
            items: u32,
            /// Its version.
            version: Version<'a>,
            /// Whether another follows.
            more: bool,
        }
        /// A line of a watch came that is about an object.
        7 Line {
            /// What it says.
            line: LineType,
            /// The object.
            key: &'a str,
            /// A hash of the object's uid, which differs for two objects of one name.
            uid: u32,
            /// The version of the state.
            version: Version<'a>,
        }
        /// A bookmark came.
        8 Bookmark {
            /// The version the watch has reached.
            version: Version<'a>,
            /// Whether it ends the initial list.
            ends_initial: bool,
        }
        /// Everything there is was read.
        9 Loaded {
            /// At which version.
            version: Version<'a>,
            /// How many objects there are.
            objects: u32,
        }
        /// It found, or another reflector did, that the server has another history.
        10 Doubted {}
        /// A list or a watch ended.
        11 Ended {
            /// Which of these.
            stage: Stage,
            /// Why.
            end: End,
            /// Whether any event was received before.
            received: bool,
            /// How long it lasted since it was open.
            lasted: Duration,
            /// The state of the reflector's policy before, as it writes it.
            state: Numbers,
        }
        /// It decided how to go on.
        12 Decided {
            /// With what.
            next: NextStep,
            /// After which pause.
            delay: Duration,
            /// The bits of the random number, from 0 to 1, by which the pause varies.
            jitter: u64,
        }
        /// It was stopped.
        13 Stopped {}
        /// A line of a watch came that cannot be read.
        14 Unreadable {}
    }
}

records! {
    /// What happened to a cache.
    Stored<'a> {
        /// A change was published to all subscribers.
        1 Changed {
            /// What happened.
            change: ChangeType,
            /// To which object.
            key: &'a str,
            /// The version of the state; of a deleted object the last.
            version: Version<'a>,
        }
        /// The answer to a write of this process came, and is taken in before the event of the watch.
        2 Wrote {
            /// The object.
            key: &'a str,
            /// The version the server answered with.
            version: Version<'a>,
        }
        /// The answer to a deletion by this process came.
        3 Removed {
            /// The object.
            key: &'a str,
        }
    }
}

records! {
    /// What happened to a work queue.
    Queued<'a> {
        /// It was made.
        1 Opened {
            /// How long a lower priority waits before it gets a share.
            patience: Duration,
            /// Which share of dequeues it gets then: one of so many.
            share: u32,
            /// Whether groups of keys take turns.
            fair: bool,
        }
        /// A key was added.
        2 Added {
            /// The key.
            key: &'a str,
            /// For which lanes.
            lanes: Lanes,
            /// After which delay.
            after: Duration,
            /// Whether the delay is kept, also if the key comes earlier for another reason.
            kept: bool,
            /// How urgently.
            priority: Urgency,
            /// How many times in a row the lanes failed, if the caller knows.
            failures: u32,
            /// The delay the rate limiter chose, if it was asked; the shorter one counts.
            limited: Option<Duration>,
            /// The group of the key, where groups take turns.
            group: Option<u64>,
            /// Why; the first of the causes.
            cause: CauseType,
            /// The handler that caused it; empty if it was none.
            by: &'a str,
            /// The version that is the cause; empty for none.
            version: Version<'a>,
        }
        /// Delays were found to have ended, by someone who did not take a key.
        3 Released {}
        /// A worker got a key.
        4 Dequeued {
            /// The key.
            key: &'a str,
            /// The lanes that are due.
            lanes: Lanes,
            /// How urgent it was.
            priority: Urgency,
            /// How long it had been due.
            waited: Duration,
        }
        /// A worker gave a key back.
        5 Finished {
            /// The key.
            key: &'a str,
            /// What became of its lanes; the others are done.
            verdicts: Verdicts,
        }
        /// A worker gave a key back without having done the work.
        6 GivenBack {
            /// The key.
            key: &'a str,
        }
        /// A drain began: what comes due from now on is kept for later.
        7 DrainBegan {}
        /// A drain ended.
        8 DrainEnded {}
        /// It was shut down.
        9 ShutDown {
            /// Whether what was due is dropped.
            now: bool,
        }
        /// It accepts keys again.
        10 Reopened {}
        /// The failures of a lane were forgotten.
        11 Forgot {
            /// The key.
            key: &'a str,
            /// The lane; [`u32::MAX`] for all.
            lane: u32,
        }
        /// Nothing at all is in the queue since: it does what a new one would.
        12 Emptied {
            /// As for [`Opened`](Self::Opened), of which the record may be gone by now.
            patience: Duration,
            /// As for [`Opened`](Self::Opened).
            share: u32,
            /// As for [`Opened`](Self::Opened).
            fair: bool,
        }
    }
}

records! {
    /// What a controller did.
    Controlled<'a> {
        /// A handler was registered.
        1 Registered {
            /// Its lane.
            lane: u32,
            /// Its name.
            handler: &'a str,
        }
        /// A handler was taken away.
        2 Deregistered {
            /// Its lane.
            lane: u32,
            /// Its name.
            handler: &'a str,
        }
        /// Its workers began.
        3 Started {
            /// How many keys are handled at a time.
            workers: u32,
        }
        /// Its workers ended.
        4 Stopped {}
        /// A handler is called.
        5 CallBegan {
            /// The run of the key, unique in the process.
            run: u64,
            /// The key.
            key: &'a str,
            /// The handler.
            handler: &'a str,
            /// Its lane.
            lane: u32,
            /// Which attempt it is.
            attempt: u32,
        }
        /// A call ended.
        6 CallEnded {
            /// The run of the key.
            run: u64,
            /// The key.
            key: &'a str,
            /// The handler.
            handler: &'a str,
            /// How.
            end: CallEnd,
            /// How long it took.
            took: Duration,
            /// When the handler is called again by itself.
            again: Option<Duration>,
        }
    }
}
