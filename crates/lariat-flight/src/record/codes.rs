//! Enums of which a record has a byte.

use crate::code::{Decoder, Encoder, Field};

/// Declares an enum that is written as one byte, with the words for it.
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
            /// All there are.
            pub const ALL: &[Self] = &[$( Self::$variant, )*];

            /// Returns the words for it, in lower case.
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
    /// What a factory did.
    FactoryStep {
        /// It started.
        1 Started = "started",
        /// It began to stop.
        2 Stopping = "stopping",
        /// It stopped, and no task is left.
        3 Stopped = "stopped",
    }
}

codes! {
    /// What a line of a watch says about an object.
    LineType {
        /// It came into sight.
        1 Added = "ADDED",
        /// It has another state.
        2 Modified = "MODIFIED",
        /// It is gone.
        3 Deleted = "DELETED",
    }
}

codes! {
    /// What a store says happened to an object.
    ChangeType {
        /// It came into sight.
        1 Added = "added",
        /// It was there when the cache was filled.
        2 Found = "found",
        /// It has another version.
        3 Updated = "updated",
        /// It is gone.
        4 Deleted = "deleted",
        /// Nothing happened: it is published again by schedule.
        5 Resynced = "resynced",
    }
}

codes! {
    /// What a reflector was doing.
    Stage {
        /// Reading a list.
        1 List = "list",
        /// Reading a watch that begins with everything there is, before the end of that.
        2 Stream = "initial stream",
        /// Watching.
        3 Watch = "watch",
        /// Asking the server for its history.
        4 Check = "check of the history",
    }
}

codes! {
    /// What a reflector does next.
    NextStep {
        /// Reads everything there is.
        1 Load = "everything is read again",
        /// Watches from the version it has reached.
        2 Watch = "a watch goes on from the last version",
        /// Nothing: the kind is not served, or it was stopped.
        3 Nothing = "nothing more is read",
    }
}

codes! {
    /// How urgent a key is.
    Urgency {
        /// Work that can wait.
        1 Low = "low",
        /// Fresh changes.
        2 Normal = "normal",
        /// What overtakes fresh changes.
        3 High = "high",
    }
}

codes! {
    /// Why a key was enqueued.
    CauseType {
        /// It was not said.
        1 Unknown = "not said",
        /// The object came into sight.
        2 Added = "added",
        /// The object changed.
        3 Updated = "updated",
        /// The object is gone.
        4 Deleted = "deleted",
        /// A handler of this process wrote the object.
        5 Wrote = "written",
        /// A related object changed.
        6 Related = "related",
        /// The store is published again by schedule.
        7 Resync = "resync",
        /// Code asked for the key.
        8 Enqueued = "enqueued",
        /// A handler failed and is tried again.
        9 Retry = "retry",
        /// A handler asked to be called again.
        10 Requeued = "requeued",
        /// A handler was registered late.
        11 LateHandler = "late handler",
    }
}

codes! {
    /// What became of a lane.
    VerdictType {
        /// Nothing is left to do.
        1 Done = "done",
        /// It asked to come again.
        2 Again = "again",
        /// It failed, and is tried again.
        3 Failed = "failed",
        /// It is tried again, and not counted among its failures.
        4 Held = "held",
    }
}

codes! {
    /// How a call of a handler ended.
    CallEnd {
        /// Nothing is left to do.
        1 Done = "done",
        /// The handler asked to be called again after a delay.
        2 Requeued = "requeued",
        /// Its error is to be ignored.
        3 Ignored = "ignored",
        /// It failed, and is tried again.
        4 Failed = "failed",
        /// It failed, and trying again is of no use.
        5 Terminal = "terminal",
        /// It panicked.
        6 Panicked = "panicked",
        /// It took longer than its timeout.
        7 TimedOut = "timed out",
        /// It is tried again, and not counted among the failures in a row.
        8 Held = "held",
    }
}
