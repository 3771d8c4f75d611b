//! What is known about a kind.

use std::fmt;
use std::time::Duration;

use lariat_core::{Gvk, ResourceVersion};

use crate::store::Storage;

/// What the reflector of a kind is at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Nothing runs: not started, or stopped.
    #[default]
    Idle,
    /// The kind is looked up at the API server.
    Resolving,
    /// Everything there is is being read.
    Listing {
        /// How many objects have been read.
        loaded: usize,
        /// How many there are, if the API server says so.
        total: Option<usize>,
    },
    /// The cache is filled, and the watch keeps it so.
    Synced,
    /// The API server does not serve the kind; it is asked again every few seconds.
    Missing,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("idle"),
            Self::Resolving => f.write_str("resolving"),
            Self::Listing {
                loaded,
                total: None,
            } => write!(f, "listing, {loaded} so far"),
            Self::Listing {
                loaded,
                total: Some(total),
            } => write!(f, "listing, {loaded} of {total}"),
            Self::Synced => f.write_str("synced"),
            Self::Missing => f.write_str("not served"),
        }
    }
}

/// The state and the totals of one kind's cache.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KindStatus {
    /// The kind.
    pub gvk: Gvk,
    /// What its reflector is at.
    pub phase: Phase,
    /// How many objects are cached.
    pub objects: usize,
    /// How many bytes they hold; see [`Store::bytes`](crate::Store::bytes).
    pub bytes: usize,
    /// In which form they are kept.
    pub storage: Storage,
    /// Values that had to be decoded from them for caches, handlers, relations and streams; whoever finds a
    /// value that is shared costs none.
    pub decodes: u64,
    /// The version up to which the cache is; of several namespaces, the one that was reported last.
    pub version: Option<ResourceVersion>,
    /// Times everything there is was read to its end, by a list or by a watch that began with it; the first
    /// time fills the cache.
    pub loads: u64,
    /// Lists begun, pages not counted. A watch that begins with everything there is needs none.
    pub lists: u64,
    /// Watches opened.
    pub watches: u64,
    /// Objects and events that could not be read, and were passed over.
    pub unreadable: u64,
    /// How long ago the API server said anything on a watch, if it ever did. Of a kind in which nothing happens it may
    /// say nothing for ten minutes; see [`is_stale`](Self::is_stale).
    pub last_heard: Option<Duration>,
    /// How long a filled cache has been without a watch, because the last one ended and no other is open yet; of several
    /// namespaces the longest. Moments are ordinary: watches end after some minutes and are opened again.
    pub interrupted: Option<Duration>,
    /// What went wrong last, if anything has since the last success.
    pub last_error: Option<String>,
    /// How long the pause after it is, if something is tried again.
    pub retry_in: Option<Duration>,
    pub(super) reconnects: [u64; Reconnect::ALL.len()],
}

/// How long a watch may take to be opened again.
const ORDINARY_INTERRUPTION: Duration = Duration::from_secs(5);

impl KindStatus {
    /// Returns whether the cache shows what was, rather than what is: it is filled, and has been without a watch for more
    /// than five seconds. Such a cache is still `Synced`, and can be read; a check of a program's health may want to
    /// say so.
    ///
    /// A connection on which nothing comes any more is noticed after 45 seconds over HTTP/2.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.interrupted
            .is_some_and(|interrupted| interrupted > ORDINARY_INTERRUPTION)
    }

    /// Returns how many requests followed one that ended for some reason.
    #[must_use]
    pub fn reconnects(&self, reason: Reconnect) -> u64 {
        self.reconnects[reason as usize]
    }
}

/// Why a reflector asked the API server anew, after a list or a watch that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reconnect {
    /// A watch ended as watches do: servers end them after some minutes.
    Closed,
    /// The version to go on from is not in the API server's history any more (410), so everything is read again.
    Expired,
    /// Nothing came, for so long that the connection must be dead.
    Silent,
    /// The API server refused the request, or does not serve the kind.
    Refused,
    /// The API server was not reached, or its answer broke off, or is not what the API says it is.
    Failed,
}

impl Reconnect {
    /// All reasons.
    pub const ALL: [Self; 5] = [
        Self::Closed,
        Self::Expired,
        Self::Silent,
        Self::Refused,
        Self::Failed,
    ];

    /// Returns the word for it, in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Expired => "expired",
            Self::Silent => "silent",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}
