//! The events of a watch.

use std::sync::Arc;

use crate::status::ApiError;
use crate::store::{EventType, Stored};

/// One event of a watch, in whatever format its client wants it.
#[derive(Debug, Clone)]
pub(crate) enum WatchEvent {
    Object {
        event: EventType,
        stored: Arc<Stored>,
    },
    /// Everything up to a revision was sent.
    Bookmark {
        revision: u64,
        /// It marks the end of the initial events.
        ends_initial: bool,
    },
    Error(ApiError),
    /// Half of a line, because the watch is cut.
    HalfLine,
}
