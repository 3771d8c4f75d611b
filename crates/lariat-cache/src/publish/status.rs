//! The status of a kind.

use std::fmt;
use std::time::Duration;

use lariat_core::{Gvk, ResourceVersion};

use crate::store::Storage;

/// The phase of a kind's cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// No reflector is running: not started, or stopped.
    #[default]
    Idle,
    /// The kind is looked up at the API server.
    Resolving,
    /// All objects are being read.
    Listing {
        /// How many objects have been read.
        loaded: usize,
        /// The number of objects, if the API server sent it.
        total: Option<usize>,
    },
    /// The cache has synced, and a watch keeps it up to date.
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

/// The status and the totals of one kind's cache.
///
/// ```
/// use lariat_cache::{KindStatus, Phase};
///
/// fn report(status: &KindStatus) -> String {
///     let error = status.last_error.as_deref().unwrap_or("none");
///     match status.phase {
///         Phase::Synced => format!("{}: {} objects", status.gvk, status.objects),
///         _ => format!("{}: {}, last error: {error}", status.gvk, status.phase),
///     }
/// }
/// # let _ = report;
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KindStatus {
    /// The kind.
    pub gvk: Gvk,
    /// The phase of its cache.
    pub phase: Phase,
    /// The number of cached objects.
    pub objects: usize,
    /// Their size in bytes; see [`Store::bytes`](crate::Store::bytes).
    pub bytes: usize,
    /// The form in which they are stored.
    pub storage: Storage,
    /// How many values were decoded for caches, handlers, relations and streams.
    ///
    /// Reading a shared value does not count.
    pub decodes: u64,
    /// How many values were read without a decode: shared ones that were in use, and metadata.
    pub hits: u64,
    /// The version of the cache; with several namespaces, the last one that arrived.
    pub version: Option<ResourceVersion>,
    /// How often all objects were read to the end, by a list or a watch list.
    ///
    /// The first time syncs the cache.
    pub loads: u64,
    /// Lists begun, without their further pages; a watch list is none.
    pub lists: u64,
    /// Watches opened.
    pub watches: u64,
    /// Bytes of the bodies of lists and watches, as they were sent: of compressed ones the compressed bytes.
    pub received: u64,
    /// Objects and events that could not be read and were skipped.
    pub unreadable: u64,
    /// How long ago the API server last sent something on a watch, if it ever did.
    ///
    /// For a kind without changes it may send nothing for ten minutes; see [`is_stale`](Self::is_stale).
    pub last_heard: Option<Duration>,
    /// How long a synced cache has been without a watch.
    ///
    /// With several namespaces the longest.
    ///
    /// The last watch has ended and no other is open yet. Moments are usual: watches end after some minutes and are
    /// opened again.
    pub interrupted: Option<Duration>,
    /// The last error since the last success, if any.
    pub last_error: Option<String>,
    /// The delay before the next attempt after it, if there is one.
    pub retry_in: Option<Duration>,
    pub(super) reconnects: [u64; Reconnect::ALL.len()],
}

/// How long opening a watch again may take.
const ORDINARY_INTERRUPTION: Duration = Duration::from_secs(5);

impl KindStatus {
    /// Returns whether the cache is outdated: synced, but without a watch for more than five seconds.
    ///
    /// Such a cache is still `Synced` and can be read; a health check may want to report it. A dead HTTP/2 connection
    /// is detected after 45 seconds.
    ///
    /// ```
    /// use lariat_cache::{KindStatus, Phase};
    ///
    /// fn is_healthy(status: &KindStatus) -> bool {
    ///     status.phase == Phase::Synced && !status.is_stale()
    /// }
    /// # let _ = is_healthy;
    /// ```
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.interrupted
            .is_some_and(|interrupted| interrupted > ORDINARY_INTERRUPTION)
    }

    /// Returns how many requests followed one that ended for the given reason.
    ///
    /// ```
    /// use lariat_cache::{KindStatus, Reconnect};
    ///
    /// fn expired_watches(status: &KindStatus) -> u64 {
    ///     status.reconnects(Reconnect::Expired)
    /// }
    /// # let _ = expired_watches;
    /// ```
    #[must_use]
    pub fn reconnects(&self, reason: Reconnect) -> u64 {
        self.reconnects[reason as usize]
    }
}

/// Why a reflector sent another request after a list or a watch that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reconnect {
    /// A watch ended as usual: servers end them after some minutes.
    Closed,
    /// The version is no longer in the API server's history (410).
    ///
    /// Everything is read again.
    Expired,
    /// Nothing arrived for so long that the connection must be dead.
    Silent,
    /// The API server refused the request, or does not serve the kind.
    Refused,
    /// The API server was not reached, or its answer was cut off or malformed.
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

    /// Returns the name in lower case.
    ///
    /// ```
    /// use lariat_cache::Reconnect;
    ///
    /// let names = Reconnect::ALL.map(Reconnect::as_str);
    /// assert_eq!(names, ["closed", "expired", "silent", "refused", "failed"]);
    /// ```
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
