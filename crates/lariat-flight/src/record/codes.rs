//! The enums that are encoded as one byte.

use crate::code::{Decoder, Encoder, Field};

/// Declares an enum that is encoded as one byte, with the text of each variant.
macro_rules! codes {
    (
        $(#[$meta:meta])*
        $name:ident {
            $( $(#[$about:meta])* $code:literal $variant:ident = $word:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $( $(#[$about])* $variant, )*
        }

        impl $name {
            /// All variants.
            pub const ALL: &[Self] = &[$( Self::$variant, )*];

            /// Returns the text of the variant, in lower case.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )*
                }
            }
        }

        impl Field<'_> for $name {
            fn put(&self, to: &mut Encoder) {
                to.byte(match self {
                    $( Self::$variant => $code, )*
                });
            }

            fn get(from: &mut Decoder<'_>) -> Option<Self> {
                match from.byte()? {
                    $( $code => Some(Self::$variant), )*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// A step of a factory.
    FactoryStep {
        /// It started.
        1 Started = "started",
        /// It is stopping.
        2 Stopping = "stopping",
        /// It has stopped, and all its tasks have ended.
        3 Stopped = "stopped",
    }
}

codes! {
    /// The type of a watch line about an object.
    LineType {
        /// The object was added.
        1 Added = "ADDED",
        /// The object changed.
        2 Modified = "MODIFIED",
        /// The object was deleted.
        3 Deleted = "DELETED",
    }
}

codes! {
    /// The type of a change in a store.
    ChangeType {
        /// The object was added.
        1 Added = "added",
        /// The object existed when the cache synced.
        2 Found = "found",
        /// The object has another version.
        3 Updated = "updated",
        /// The object was deleted.
        4 Deleted = "deleted",
        /// A periodic resync published the object again.
        5 Resynced = "resynced",
    }
}

codes! {
    /// The stage of a reflector.
    Stage {
        /// Reading a list.
        1 List = "list",
        /// Reading the initial objects of a watch list.
        2 Stream = "watch list",
        /// Watching.
        3 Watch = "watch",
        /// Checking the server's history.
        4 Check = "history check",
    }
}

codes! {
    /// The next step of a reflector.
    NextStep {
        /// Lists all objects again.
        1 Load = "relist",
        /// Watches from the version that it has reached.
        2 Watch = "resume the watch from the last version",
        /// Stops, because the kind is not served or the reflector was stopped.
        3 Nothing = "stop",
    }
}

codes! {
    /// The priority of a key.
    Urgency {
        /// Work that can wait.
        1 Low = "low",
        /// Changes.
        2 Normal = "normal",
        /// Work that is done before changes.
        3 High = "high",
    }
}

codes! {
    /// The reason why a key was enqueued.
    CauseType {
        /// The reason is unknown.
        1 Unknown = "unknown",
        /// The object was added.
        2 Added = "added",
        /// The object changed.
        3 Updated = "updated",
        /// The object was deleted.
        4 Deleted = "deleted",
        /// A handler of this process wrote the object.
        5 Wrote = "written",
        /// A related object changed.
        6 Related = "related",
        /// A periodic resync.
        7 Resync = "resync",
        /// A call enqueued the key.
        8 Enqueued = "enqueued",
        /// A handler failed and is retried.
        9 Retry = "retry",
        /// A handler requested another run.
        10 Requeued = "requeued",
        /// A handler was registered while the controller was running.
        11 LateHandler = "late handler",
    }
}

codes! {
    /// The result of a lane.
    VerdictType {
        /// The lane is done.
        1 Done = "done",
        /// The lane requested another run.
        2 Again = "again",
        /// The lane failed and is retried.
        3 Failed = "failed",
        /// The lane is retried without counting a failure.
        4 Held = "postponed",
    }
}

codes! {
    /// How a call of a handler ended.
    CallEnd {
        /// The handler succeeded.
        1 Done = "done",
        /// The handler succeeded and requested another run.
        2 Requeued = "requeued",
        /// The handler's error is ignored.
        3 Ignored = "ignored",
        /// The handler failed and is retried.
        4 Failed = "failed",
        /// The handler failed and is not retried.
        5 Terminal = "terminal",
        /// The handler panicked.
        6 Panicked = "panicked",
        /// The handler took longer than its timeout.
        7 TimedOut = "timed out",
        /// The handler is retried without counting a failure.
        8 Held = "postponed",
    }
}
