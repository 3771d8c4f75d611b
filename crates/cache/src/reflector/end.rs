//! The ways in which a list or a watch can end, and the steps that follow.

use std::fmt;
use std::time::Duration;

/// How a list, a watch or a history check ended, without error texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It was read to the end, or answered as expected.
    Complete,
    /// The server closed the watch, as servers do after some minutes.
    Closed,
    /// The server closed the watch before its time, as servers do that end.
    ClosedEarly,
    /// The watch ended immediately, without an event.
    EndedImmediately,
    /// The version is no longer in the server's history (410).
    Expired,
    /// The connection was lost in the middle of the response.
    Cut,
    /// Nothing arrived for too long.
    Silent,
    /// The request could not be sent, or was not answered.
    Unreachable,
    /// The request was sent, but no response came in time.
    Unanswered,
    /// The response does not follow the API.
    Malformed,
    /// The server answered with an error.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The `Retry-After` header of the response.
        retry_after: Option<Duration>,
    },
    /// The server does not serve the kind.
    NotServed,
    /// A watch list had no end marker.
    NoEndMarker,
    /// The server has a different history than the one the store was read from.
    OtherHistory,
}

/// What a reflector is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// A list in pages.
    List,
    /// A watch list, before its end marker.
    Stream,
    /// A watch from a version.
    Watch,
    /// A request for the server's version.
    Check,
}

/// What a reflector does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    /// It reads everything again.
    Load,
    /// It watches from the last version.
    Watch,
    /// It ends.
    Nothing,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused {
                status,
                retry_after: Some(after),
            } => return write!(f, "refused with {status}, retry after {after:?}"),
            Self::Refused { status, .. } => return write!(f, "refused with {status}"),
            Self::Complete => "complete",
            Self::Closed => "closed by the server",
            Self::ClosedEarly => "closed by the server before its time",
            Self::EndedImmediately => "ended without an event",
            Self::Expired => "the version has expired (410)",
            Self::Cut => "connection lost",
            Self::Silent => "no data for too long",
            Self::Unreachable => "server unreachable",
            Self::Unanswered => "request timed out",
            Self::Malformed => "malformed response",
            Self::NotServed => "kind not served",
            Self::NoEndMarker => "watch list without an end marker",
            Self::OtherHistory => "server has a different history",
        })
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "list",
            Self::Stream => "watch list",
            Self::Watch => "watch",
            Self::Check => "history check",
        })
    }
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Load => "load",
            Self::Watch => "watch",
            Self::Nothing => "nothing",
        })
    }
}
