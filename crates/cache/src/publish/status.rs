//! The status of a kind.

use std::fmt;
use std::time::Duration;

use lariat_core::{Gvk, ResourceVersion};

use crate::store::Storage;

/// The phase of a kind's cache.
///
/// ```
/// use lariat::cache::Phase;
///
/// let phase = Phase::Listing { loaded: 500, total: Some(1200) };
/// assert_eq!(phase.to_string(), "listing, 500 of 1200");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// No reflector is running: not started, or stopped.
    #[default]
    Idle,
    /// The kind is being looked up at the API server.
    Resolving,
    /// All objects are being read.
    Listing {
        /// How many objects have been read.
        loaded: usize,
        /// The number of objects, if the API server reported it.
        total: Option<usize>,
    },
    /// The cache has synced, and a watch keeps it up to date.
    Synced,
    /// The API server does not serve the kind; it is looked up again every few seconds.
    ///
    /// Objects of an earlier sync stay as they were: the kind is [blind](KindStatus::blind).
    Missing,
    /// The API server serves the kind without `list` and `watch`, so it cannot be cached.
    Unwatchable,
}

impl Phase {
    /// Returns whether the kind cannot be read, as far as discovery knows.
    pub(crate) fn is_unserved(&self) -> bool {
        matches!(self, Self::Missing | Self::Unwatchable)
    }
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
            Self::Unwatchable => f.write_str("not watchable"),
        }
    }
}

/// The status and the totals of one kind's cache.
///
/// ```
/// use lariat::cache::{KindStatus, Phase};
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
    /// The size of the objects in bytes; see [`Store::bytes`](crate::Store::bytes).
    pub bytes: usize,
    /// The form in which the objects are stored.
    pub storage: Storage,
    /// Whether the content [stays cached](crate::Informer::hold_content).
    ///
    /// That is while a relation or an index reads it. A memory budget stores such a kind no smaller than compressed.
    pub holds_content: bool,
    /// How many values were decoded for caches, handlers, relations and streams.
    ///
    /// Reads of a shared value do not count.
    pub decodes: u64,
    /// How many values were read without a decode: shared values and metadata.
    pub hits: u64,
    /// The version of the cache; with several namespaces, the one that arrived last.
    pub version: Option<ResourceVersion>,
    /// How often all objects were read to the end, by a list or a watch list.
    ///
    /// The first time syncs the cache.
    pub loads: u64,
    /// How many lists began; further pages and watch lists do not count.
    pub lists: u64,
    /// How many watches were opened.
    pub watches: u64,
    /// The bytes of the bodies of lists and watches, as sent: compressed ones count compressed.
    pub received: u64,
    /// How many objects and events could not be read and were skipped.
    pub unreadable: u64,
    /// How long ago the API server last sent something on a watch; `None` if never.
    ///
    /// For a kind without changes it may send nothing for ten minutes; see [`is_stale`](Self::is_stale).
    pub last_received: Option<Duration>,
    /// How long a synced cache has had no watch that reports its changes; `None` if it has one.
    ///
    /// A watch that is behind a write of this process for two minutes counts as none, until it has passed the write.
    /// With several namespaces, the longest time. Moments are usual: watches end after some minutes and are opened
    /// again.
    pub interrupted: Option<Duration>,
    /// Since when a kind that was cached has not been served; `None` while it is.
    pub blind: Option<Blind>,
    /// The last error since the last success, if any.
    pub last_error: Option<String>,
    /// The delay before the next attempt after the last error, if there is one.
    pub retry_in: Option<Duration>,
    /// The namespaces of the selection that the cache is used without, because they are forbidden.
    ///
    /// Empty without [`KindOptions::start_without_forbidden`](crate::KindOptions::start_without_forbidden).
    pub forbidden_namespaces: Vec<String>,
    pub(super) reconnects: [u64; Reconnect::ALL.len()],
}

/// A kind that was cached and that the API server does not serve any more.
///
/// Its CRD may be deleted, its version not served any more, its API service away. None of that is a deletion of
/// objects, so the cache keeps what it had, and reports no deletion. Once the kind is served again, a list shows which
/// objects still exist; the others are then reported as deleted. [`KindStatus::last_error`] has the reason.
///
/// ```
/// use lariat::cache::KindStatus;
///
/// fn warn(status: &KindStatus) {
///     if let Some(blind) = &status.blind {
///         println!("{}: {blind}", status.gvk);
///     }
/// }
/// # let _ = warn;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blind {
    /// How long the kind has not been served, in this run.
    pub lasts: Duration,
    /// The versions of the kind's group that serve it, as far as known.
    pub served: Vec<Gvk>,
}

impl fmt::Display for Blind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not served for {}s", self.lasts.as_secs())?;
        let names: Vec<String> = self.served.iter().map(Gvk::to_string).collect();
        if names.is_empty() {
            Ok(())
        } else {
            write!(f, ", served as {}", names.join(" and "))
        }
    }
}

/// How long a watch may be interrupted before the cache is stale.
const ORDINARY_INTERRUPTION: Duration = Duration::from_secs(5);

/// Returns whether a watch has been interrupted for too long.
pub(super) fn is_stale(interrupted: Option<Duration>) -> bool {
    interrupted.is_some_and(|interrupted| interrupted > ORDINARY_INTERRUPTION)
}

impl KindStatus {
    /// Returns whether a synced cache had no watch for over five seconds.
    ///
    /// Such a cache is still `Synced` and can be read; a health check may report it. A dead HTTP/2 connection is
    /// detected after 45 seconds.
    ///
    /// ```
    /// use lariat::cache::{KindStatus, Phase};
    ///
    /// fn is_healthy(status: &KindStatus) -> bool {
    ///     status.phase == Phase::Synced && !status.is_stale()
    /// }
    /// # let _ = is_healthy;
    /// ```
    #[must_use]
    pub fn is_stale(&self) -> bool {
        is_stale(self.interrupted)
    }

    /// Returns whether the cache follows the API server now.
    ///
    /// It has synced, the kind is served, and the cache is not [stale](Self::is_stale). Otherwise the cached objects
    /// are those of an earlier moment: some may not exist any more, and others may be missing.
    ///
    /// ```
    /// use lariat::cache::KindStatus;
    ///
    /// fn behind(statuses: &[KindStatus]) -> usize {
    ///     statuses.iter().filter(|status| !status.is_current()).count()
    /// }
    /// # let _ = behind;
    /// ```
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.phase == Phase::Synced && !self.is_stale()
    }

    /// Returns how many requests followed a list or watch that ended for a reason.
    ///
    /// ```
    /// use lariat::cache::{KindStatus, Reconnect};
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

/// The reason why a reflector sent another request after a list or a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reconnect {
    /// A watch ended as usual: servers end them after some minutes.
    Closed,
    /// The version is no longer in the API server's history (410 Gone).
    ///
    /// The kind is listed again.
    Expired,
    /// Nothing arrived for so long that the connection is taken for dead.
    Silent,
    /// The API server refused the request, or does not serve the kind.
    Refused,
    /// The API server could not be reached, or its answer was cut off or malformed.
    Failed,
}

impl Reconnect {
    /// All reasons, in the order of declaration.
    pub const ALL: [Self; 5] = [
        Self::Closed,
        Self::Expired,
        Self::Silent,
        Self::Refused,
        Self::Failed,
    ];

    /// Returns the name of the reason in lower case.
    ///
    /// ```
    /// use lariat::cache::Reconnect;
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
