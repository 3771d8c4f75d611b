//! One reason why a key was enqueued.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Gvk, ObjectKey, ResourceVersion, Uid};

/// One reason why a key was enqueued: the reconcile reason.
///
/// Prints as a short phrase for logs.
///
/// ```
/// use lariat::core::ResourceVersion;
/// use lariat::Cause;
///
/// let cause = Cause::Updated { from: ResourceVersion::new("7"), to: ResourceVersion::new("9") };
/// assert_eq!(cause.to_string(), "updated 7 → 9");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The object was in the initial list, or was created.
    Added {
        /// The version of the object.
        version: ResourceVersion,
    },
    /// The object changed.
    Updated {
        /// The version before the first change that has not been handled yet.
        from: ResourceVersion,
        /// The version after the last change.
        to: ResourceVersion,
    },
    /// The object was deleted.
    Deleted {
        /// The uid of the object. A later object with the same key has another one.
        uid: Uid,
        /// The version of its last known state.
        version: ResourceVersion,
    },
    /// A handler of this process created or changed the object.
    Wrote {
        /// The name of the handler.
        by: Arc<str>,
        /// The version before the write; `None` if the handler created the object.
        from: Option<ResourceVersion>,
        /// The version after the write.
        to: ResourceVersion,
        /// The run that wrote it; the first one if several writes were merged.
        during: Arc<CausingRun>,
    },
    /// A related object changed.
    Related {
        /// The related object and its change.
        of: Arc<RelatedChange>,
    },
    /// A periodic resync replayed the store; nothing changed.
    Resync,
    /// A call enqueued the key.
    Enqueued {
        /// The handler that enqueued it; `None` outside of handlers.
        by: Option<Arc<str>>,
        /// The reason that the caller gave, if any.
        reason: Option<Arc<str>>,
        /// The source location of the call.
        at: &'static Location<'static>,
        /// The delay that the call asked for.
        after: Duration,
        /// The run that enqueued it; the first one if several calls were merged.
        during: Option<Arc<CausingRun>>,
    },
    /// A handler failed and is retried.
    Retry {
        /// The handler.
        handler: Arc<str>,
        /// How many times in a row it has failed.
        failures: u32,
    },
    /// A handler requested another run.
    Requeued {
        /// The handler.
        handler: Arc<str>,
        /// The requested time.
        due: Instant,
    },
    /// A handler was registered while the controller was running.
    ///
    /// The handler is called for all objects that exist.
    LateHandler {
        /// The handler.
        handler: Arc<str>,
    },
}

/// The identity of an object: its kind and key.
///
/// ```
/// use lariat::core::Subject;
/// use lariat::{Gvk, ObjectKey};
///
/// let pod = Subject { gvk: Gvk::new("", "v1", "Pod"), key: ObjectKey::namespaced("shop", "web-0") };
/// assert_eq!(pod.key.name(), "web-0");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The kind.
    pub gvk: Gvk,
    /// The key.
    pub key: ObjectKey,
}

/// A run of a handler that caused another run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CausingRun {
    /// The object that the handler was called for.
    pub object: Subject,
    /// The number of the run, unique within the handler's factory.
    pub run: u64,
}

/// A change of a related object.
///
/// Prints the kind, the key and the change.
///
/// ```
/// use lariat::core::{RelatedChange, ResourceVersion, Subject};
/// use lariat::{Cause, Gvk, ObjectKey};
///
/// let object = Subject { gvk: Gvk::new("", "v1", "Pod"), key: ObjectKey::namespaced("shop", "web-0") };
/// let change = RelatedChange { object, cause: Cause::Added { version: ResourceVersion::new("7") } };
/// assert_eq!(change.to_string(), "Pod shop/web-0 added at 7");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelatedChange {
    /// The object.
    pub object: Subject,
    /// The change.
    pub cause: Cause,
}

impl fmt::Display for RelatedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Subject { gvk, key } = &self.object;
        write!(f, "{} {key} {}", gvk.kind(), self.cause)
    }
}

impl Cause {
    /// Merges a later cause that continues this one; returns it if it does not.
    pub(crate) fn merge(&mut self, later: Cause) -> Result<(), Cause> {
        if *self == later {
            return Ok(());
        }
        match (self, later) {
            // Consecutive updates become one range. With a gap or another cause in between they stay apart, so that the
            // reader sees that something is missing.
            (Self::Updated { to, .. }, Self::Updated { from, to: newest }) if *to == from => {
                *to = newest;
                Ok(())
            }
            // An object that was added and updated before the first run is new to the handler, so this is an addition
            // at the later version.
            (Self::Added { version }, Self::Updated { from, to }) if *version == from => {
                *version = to;
                Ok(())
            }
            (
                Self::Retry { handler, failures },
                Self::Retry {
                    handler: again,
                    failures: more,
                },
            ) if *handler == again => {
                // Failures are counted in a row, so the newest number includes the earlier ones.
                *failures = more;
                Ok(())
            }
            (
                Self::Wrote { by, to, .. },
                Self::Wrote {
                    by: again,
                    from: Some(from),
                    to: newest,
                    ..
                },
            ) if *by == again && *to == from => {
                *to = newest;
                Ok(())
            }
            (_, later) => Err(later),
        }
    }
}

impl Cause {
    /// Returns whether a later cause adds nothing to this one.
    ///
    /// Of two requests of one handler the earlier one counts. Of two runs that enqueued a key at the same source
    /// location for the same object, the first one suffices as an explanation.
    pub(crate) fn covers(&self, later: &Cause) -> bool {
        match (self, later) {
            (
                Self::Requeued { handler, due },
                Self::Requeued {
                    handler: again,
                    due: later,
                },
            ) => handler == again && due <= later,
            (
                Self::Enqueued {
                    by,
                    reason,
                    at,
                    after,
                    during: Some(during),
                },
                Self::Enqueued {
                    by: again,
                    reason: other,
                    at: place,
                    after: delay,
                    during: Some(run),
                },
            ) => {
                (by, reason, at, after) == (again, other, place, delay)
                    && during.object == run.object
            }
            _ => self == later,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { version } => write!(f, "added at {version}"),
            Self::Updated { from, to } => write!(f, "updated {from} → {to}"),
            Self::Deleted { version, .. } => write!(f, "deleted at {version}"),
            Self::Resync => f.write_str("resync"),
            Self::Wrote {
                by, from: None, to, ..
            } => write!(f, "created by {by} at {to}"),
            Self::Wrote {
                by,
                from: Some(from),
                to,
                ..
            } => write!(f, "written by {by} {from} → {to}"),
            Self::Related { of, .. } => write!(f, "{of}"),
            Self::Enqueued { by, reason, at, .. } => {
                f.write_str("enqueued ")?;
                if let Some(by) = by {
                    write!(f, "by {by} ")?;
                }
                write!(f, "at {at}")?;
                reason
                    .iter()
                    .try_for_each(|reason| write!(f, " ({reason})"))
            }
            Self::Retry { handler, failures } => write!(f, "retry {failures} of {handler}"),
            Self::Requeued { handler, .. } => write!(f, "requeued by {handler}"),
            Self::LateHandler { handler } => write!(f, "{handler} was registered late"),
        }
    }
}
