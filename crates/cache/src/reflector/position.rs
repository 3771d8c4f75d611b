//! The position of a reflector in what it reads: a load, a watch, or both.

use std::collections::HashSet;
use std::time::Duration;

use lariat_client::Connection;
use lariat_core::{ObjectKey, RawObject, ResourceVersion};
use tokio::time::Instant;
use tracing::Span;

use super::error::ReflectorError;
use super::last_event::LastEvent;
use super::stream::{LineForm, WatchStream};
use crate::store::Listing;

/// An open watch, and how far it is.
pub(super) struct OpenWatch {
    pub(super) stream: WatchStream,
    pub(super) cursor: Cursor,
    /// The connection, unless the source has its own.
    pub(super) connection: Option<Connection>,
    pub(super) requested: Instant,
    pub(super) opened: Instant,
    /// The span of the request.
    pub(super) span: Span,
}

/// The position of a watch, and the initial list before it.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// The version of the last event; the next watch continues from it.
    pub(super) version: ResourceVersion,
    /// The requested duration of the watch.
    pub(super) timeout: Duration,
    /// Whether any event has been received.
    pub(super) has_events: bool,
    /// The number of lines that were parsed.
    pub(super) lines: u64,
    /// The form of the lines.
    pub(super) form: LineForm,
    /// The initial list, until its end marker.
    pub(super) loading: Option<Loading>,
    /// When the last new object of the initial list arrived.
    pub(super) last_new: Option<Instant>,
    /// Whether the watch ends here, so that the kind is listed again.
    pub(super) is_reread: bool,
    /// How many bookmarks and repetitions brought nothing new.
    pub(super) standing: u64,
    /// The event that must be the first one.
    pub(super) repeats: Option<LastEvent>,
    /// Whether the server has repeated it.
    pub(super) has_repeated: bool,
    /// The objects with an event from before `version` that are not listed, and whose deletion has not come yet.
    pub(super) unlisted: HashSet<ObjectKey>,
}

/// A load in progress: a list in pages, or the initial part of a watch list.
#[derive(Debug)]
pub(super) struct Loading {
    pub(super) listing: Listing,
    /// Whether the cache is filled for the first time in this run.
    pub(super) initial: bool,
    pub(super) started: Instant,
    pub(super) logged: Instant,
    pub(super) loaded: usize,
    /// The number of the server's history when the list began.
    pub(super) history: u64,
    /// Objects that were read and are not in the store yet.
    pub(super) pending: Vec<RawObject>,
}

impl std::fmt::Debug for OpenWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("OpenWatch");
        debug.field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

impl Cursor {
    /// Creates the cursor of a watch list.
    pub(super) fn loading(loading: Loading, timeout: Duration) -> Self {
        Self {
            timeout,
            loading: Some(loading),
            last_new: Some(Instant::now()),
            ..Self::default()
        }
    }

    /// Creates the cursor of a watch that continues from a version, or repeats the last event before it.
    pub(super) fn at(
        version: ResourceVersion,
        timeout: Duration,
        repeats: Option<LastEvent>,
    ) -> Self {
        Self {
            version,
            timeout,
            repeats,
            ..Self::default()
        }
    }

    /// Checks that every event from before the version has been of an object that was deleted by then.
    ///
    /// # Errors
    ///
    /// [`ReflectorError::OtherHistory`] if an object was not deleted: the list would have had it.
    pub(super) fn check_unlisted(&self) -> Result<(), ReflectorError> {
        if self.unlisted.is_empty() {
            Ok(())
        } else {
            Err(ReflectorError::OtherHistory)
        }
    }

    pub(super) fn move_to(&mut self, version: &ResourceVersion) {
        self.has_events = true;
        if !version.is_empty() {
            self.version = version.clone();
        }
    }
}
