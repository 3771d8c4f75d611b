//! The records of what happened.

use std::time::Duration;

use lariat_core::ResourceVersion;
use smallvec::SmallVec;

use super::codes::{
    CallEnd, CauseType, ChangeType, FactoryStep, LineType, NextStep, Stage, Urgency, VerdictType,
};
use super::end::End;
use crate::code::{Decoder, Encoder, Field};

/// Lanes by number; [`u32::MAX`] stands for all lanes.
pub type Lanes = SmallVec<[u32; 4]>;

/// Numbers that only their producer can interpret.
pub type Numbers = SmallVec<[u32; 12]>;

/// The results of a key's lanes.
pub type Verdicts = SmallVec<[LaneVerdict; 2]>;

/// A resource version, as a number if it is one.
///
/// ```
/// use lariat_core::ResourceVersion;
/// use lariat_flight::Version;
///
/// let version = ResourceVersion::new("42");
/// assert_eq!(Version::from(&version), Version::Number(42));
/// assert_eq!(Version::Text("").to_string(), "(none)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version<'a> {
    /// A number, as conformant API servers use.
    Number(u64),
    /// Any other text; empty if there is no version.
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

/// The result of one lane of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneVerdict {
    /// The lane; [`u32::MAX`] for the key as a whole.
    pub lane: u32,
    /// The type of the result.
    pub what: VerdictType,
    /// The delay before the next run; zero if there is none.
    pub after: Duration,
    /// The priority of the next run; `None` keeps that of the key.
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

/// Declares an enum of records with its encoding: a tag, then the fields in their order.
///
/// A tag that is in use keeps its meaning and its fields; a new variant gets the next tag.
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
    /// A record of an event.
    Record<'a> {
        /// A factory started or stopped.
        1 Factory {
            /// The step.
            step: FactoryStep,
            /// The default number of workers per kind; `None` for a factory of caches.
            workers: Option<u32>,
        }
        /// A reflector read something, or decided about its next step.
        2 Reflector {
            /// The kind.
            kind: &'a str,
            /// The number of the reflector.
            ///
            /// A kind that is restricted to namespaces has several.
            reflector: u32,
            /// The event.
            what: Reflected<'a>,
        }
        /// The cache of a kind changed.
        3 Store {
            /// The kind.
            kind: &'a str,
            /// The event.
            what: Stored<'a>,
        }
        /// A work queue was used.
        4 Queue {
            /// The kind.
            kind: &'a str,
            /// The number of the queue; a kind's controller that restarts gets a new one.
            queue: u32,
            /// The event.
            what: Queued<'a>,
        }
        /// A controller called a handler, or its handlers changed.
        5 Controller {
            /// The kind.
            kind: &'a str,
            /// The event.
            what: Controlled<'a>,
        }
    }
}

records! {
    /// An event of a reflector.
    Reflected<'a> {
        /// It began.
        1 Began {
            /// The namespace it reads; empty for all.
            namespace: &'a str,
            /// Whether it uses watch lists if the server supports them.
            streams: bool,
            /// Whether a watch may continue without a check of the server's history.
            verified: bool,
            /// The version from which it continues.
            since: Option<Version<'a>>,
        }
        /// It began to list.
        2 ListBegan {
            /// Whether the list is requested in one piece rather than in pages.
            whole: bool,
        }
        /// It began a watch list.
        3 StreamBegan {}
        /// It began to watch.
        4 WatchBegan {
            /// The version from which it continues.
            since: Version<'a>,
        }
        /// It began to check whether the server still has the history of the store.
        5 CheckBegan {
            /// The version from which the watch is to continue.
            since: Version<'a>,
        }
        /// A page of a list was read.
        6 Page {
            /// The number of its objects.
            items: u32,
            /// Its version.
            version: Version<'a>,
            /// Whether another page follows.
            more: bool,
        }
        /// A line of a watch about an object was read.
        7 Line {
            /// The type of the line.
            line: LineType,
            /// The object.
            key: &'a str,
            /// A hash of the object's uid, which differs for two objects of one name.
            uid: u32,
            /// The version of the state.
            version: Version<'a>,
        }
        /// A bookmark was read.
        8 Bookmark {
            /// The version that the watch has reached.
            version: Version<'a>,
            /// Whether it ends the initial list.
            ends_initial: bool,
        }
        /// All objects were read.
        9 Loaded {
            /// The version.
            version: Version<'a>,
            /// The number of objects.
            objects: u32,
        }
        /// A reflector found that the server has a different history.
        10 Doubted {}
        /// A list or a watch ended.
        11 Ended {
            /// The stage that ended.
            stage: Stage,
            /// How it ended.
            end: End,
            /// Whether an event was received before.
            received: bool,
            /// How long it was open.
            lasted: Duration,
            /// The previous state of the reflector's policy, as the policy encodes it.
            state: Numbers,
        }
        /// It decided about its next step.
        12 Decided {
            /// The step.
            next: NextStep,
            /// The delay before it.
            delay: Duration,
            /// The bits of the random number, from 0 to 1, that varies the delay.
            jitter: u64,
        }
        /// It was stopped.
        13 Stopped {}
        /// A line of a watch could not be read.
        14 Unreadable {}
    }
}

records! {
    /// An event of a cache.
    Stored<'a> {
        /// A change was published to all subscribers.
        1 Changed {
            /// The type of the change.
            change: ChangeType,
            /// The object.
            key: &'a str,
            /// The version of the state; the last one of a deleted object.
            version: Version<'a>,
        }
        /// The response to a write of this process was applied, ahead of the watch.
        2 Wrote {
            /// The object.
            key: &'a str,
            /// The version in the server's response.
            version: Version<'a>,
        }
        /// The response to a deletion by this process was received.
        3 Removed {
            /// The object.
            key: &'a str,
        }
    }
}

records! {
    /// An event of a work queue.
    Queued<'a> {
        /// It was created.
        1 Opened {
            /// How long a lower priority waits before it is aged.
            threshold: Duration,
            /// The share of aged keys: one of this many dequeues.
            share: u32,
            /// Whether it has fair queuing between groups of keys.
            fair: bool,
        }
        /// A key was added.
        2 Added {
            /// The key.
            key: &'a str,
            /// The lanes.
            lanes: Lanes,
            /// The delay.
            after: Duration,
            /// Whether the delay is kept if the lanes become due earlier.
            kept: bool,
            /// The priority.
            priority: Urgency,
            /// How many times in a row the lanes failed, if the caller set it.
            failures: u32,
            /// The delay of the rate limiter, if it was called; the shorter delay counts.
            limited: Option<Duration>,
            /// The group of the key, with fair queuing.
            group: Option<u64>,
            /// The first cause.
            cause: CauseType,
            /// The handler that caused it; empty if there is none.
            by: &'a str,
            /// The version in the cause; empty if there is none.
            version: Version<'a>,
        }
        /// Delays ended in a call that dequeued no key.
        3 Released {}
        /// A key was dequeued.
        4 Dequeued {
            /// The key.
            key: &'a str,
            /// The lanes that are due.
            lanes: Lanes,
            /// The priority.
            priority: Urgency,
            /// How long the key was due.
            waited: Duration,
        }
        /// A worker finished a key.
        5 Finished {
            /// The key.
            key: &'a str,
            /// The results of its lanes; lanes without one are done.
            verdicts: Verdicts,
        }
        /// A worker returned a key without processing it.
        6 GivenBack {
            /// The key.
            key: &'a str,
        }
        /// A drain began: keys that become due later are deferred until it ends.
        7 DrainBegan {}
        /// A drain ended.
        8 DrainEnded {}
        /// It was shut down.
        9 ShutDown {
            /// Whether ready keys were dropped.
            now: bool,
        }
        /// It accepts keys again.
        10 Reopened {}
        /// The failures of a lane were reset.
        11 Forgot {
            /// The key.
            key: &'a str,
            /// The lane; [`u32::MAX`] for all.
            lane: u32,
        }
        /// The queue contains nothing any more and behaves like a new one.
        12 Emptied {
            /// As for [`Opened`](Self::Opened), whose record may have been overwritten.
            threshold: Duration,
            /// As for [`Opened`](Self::Opened).
            share: u32,
            /// As for [`Opened`](Self::Opened).
            fair: bool,
        }
    }
}

records! {
    /// An event of a controller.
    Controlled<'a> {
        /// A handler was registered.
        1 Registered {
            /// Its lane.
            lane: u32,
            /// Its name.
            handler: &'a str,
        }
        /// A handler was deregistered.
        2 Deregistered {
            /// Its lane.
            lane: u32,
            /// Its name.
            handler: &'a str,
        }
        /// Its workers were started.
        3 Started {
            /// The number of workers.
            workers: u32,
        }
        /// Its workers ended.
        4 Stopped {}
        /// A call of a handler began.
        5 CallBegan {
            /// The run of the key, unique in the process.
            run: u64,
            /// The key.
            key: &'a str,
            /// The handler.
            handler: &'a str,
            /// Its lane.
            lane: u32,
            /// The number of the attempt.
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
            /// How it ended.
            end: CallEnd,
            /// How long it took.
            took: Duration,
            /// The delay until the handler's next run, if it has one.
            again: Option<Duration>,
        }
    }
}
