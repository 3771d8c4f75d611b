//! The events of a run, as its observer sees them and as the trace shows them.
#![expect(missing_docs, reason = "only the hidden `internals` show it")]

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{Change, Selection};
use lariat_cluster::{Commit, StoredObject};
use lariat_core::{Causes, Gvk, ObjectKey};

use crate::activity::{Activity, CacheProgress};
use crate::actors::{HandlerId, IncarnationId, Subscriber};
use crate::lease_report::LeaseReport;
use crate::observed::{Observed, version_of};
use crate::opaque::Opaque;

/// The number of frames of a body that are on their way at a time.
pub const WINDOW: usize = 64;

/// The resource of leases, as the cluster names it.
pub const LEASES: &str = "leases.coordination.k8s.io";

/// The time and the turn of an event.
#[derive(Debug, Clone)]
pub struct Moment {
    /// Counts all events; the order in which the thread executed them.
    pub number: u64,
    /// Virtual time since the start of the run.
    pub at: Duration,
    /// The process, `world` for the cluster and its foreign clients, or `driver`.
    pub actor: Arc<str>,
}

/// One thing that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The server committed a write, or was restored.
    Committed(Commit),
    /// A process sent a request.
    Sent { request: u64, what: String },
    /// A process got the head of an answer, or the connection broke.
    Answered { request: u64, result: String },
    /// A handler was called.
    Began {
        handler: HandlerId,
        key: ObjectKey,
        run: u64,
        attempt: u32,
        object: Option<Observed>,
        causes: Arc<Causes>,
        /// The number of times the kind's cache was filled; `None` without such a cache.
        loads: Option<u64>,
    },
    /// A call of a handler ended; no result if it panicked or was dropped.
    Ended {
        handler: HandlerId,
        key: ObjectKey,
        run: u64,
        result: Option<Result<(), String>>,
        next: Next,
    },
    /// A cache published a change to a subscriber.
    Published {
        subscriber: Subscriber,
        change: Change,
    },
    /// A process's own write was answered, and its result taken into the cache.
    Wrote {
        incarnation: IncarnationId,
        kind: Gvk,
        key: ObjectKey,
        written: Written,
    },
    /// A handler is about to write an object, and leaves a mark in it.
    Writes {
        incarnation: IncarnationId,
        kind: Gvk,
        key: ObjectKey,
        mark: Arc<str>,
    },
    /// All processes were asked what they hold.
    LeasesReported(Arc<LeaseReport>),
    /// A process restricts a kind to some of its objects, from now on.
    Selected {
        incarnation: IncarnationId,
        kind: Gvk,
        selection: Selection,
    },
    /// The progress of the caches of a process.
    Cached {
        incarnation: IncarnationId,
        kinds: Vec<CacheProgress>,
    },
    /// A subscription ended.
    Unsubscribed(Subscriber),
    /// A process read its cache.
    Read {
        incarnation: IncarnationId,
        kind: Gvk,
        key: ObjectKey,
        object: Option<Observed>,
    },
    /// An operator, or a foreign client, reports what it does.
    Did {
        incarnation: IncarnationId,
        action: Opaque,
    },
    /// A process started.
    IncarnationBegan(IncarnationId),
    /// A process ended or was killed; it reports nothing more in this incarnation.
    IncarnationEnded(IncarnationId),
    /// Faults may affect a process or a kind from now on; `None` for all.
    Disturbed {
        process: Option<Arc<str>>,
        kind: Option<Gvk>,
    },
    /// A process did something with its factory, or was looked at.
    Acted(Activity),
    /// Something in words.
    Note(String),
    /// A log line of a library.
    Log(String),
    /// A panic that no plan asked for.
    Panicked(String),
}

/// The call of a handler for the same key that must follow one that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// None.
    Done,
    /// The handler asked to be called after a delay at the latest.
    Again(Duration),
    /// It failed, and is retried: after the delay of the error, or of the limiter.
    Retry(Option<Duration>),
    /// It panicked, and is retried after the delay of the limiter.
    Panicked,
    /// It was dropped, and is called again after the next start.
    Dropped,
}

/// The result of a write.
#[derive(Debug, Clone)]
pub enum Written {
    /// The object has this version.
    State(u64),
    /// The object with this uid is gone.
    Gone(String),
}

impl Event {
    /// Returns the line of the trace; none for what would only repeat another one.
    pub(crate) fn text(&self) -> Option<String> {
        Some(match self {
            Self::Committed(commit) => return committed(commit),
            Self::Sent { request, what } => format!("#{request} {what}"),
            Self::Answered { request, result } => format!("#{request} → {result}"),
            Self::Began { .. } | Self::Ended { .. } => return self.call(),
            Self::Published { .. }
            | Self::Wrote { .. }
            | Self::Selected { .. }
            | Self::Unsubscribed(_)
            | Self::Read { .. } => return self.cached(),
            Self::Did { action, .. } => action.to_string(),
            Self::IncarnationBegan(incarnation) => {
                format!("incarnation {} begins", incarnation.number)
            }
            Self::IncarnationEnded(incarnation) => {
                format!("incarnation {} is over", incarnation.number)
            }
            Self::Writes {
                kind, key, mark, ..
            } => format!("writes {} {key}: {mark}", kind.kind()),
            Self::LeasesReported(report) => report.to_string(),
            // The step of the plan is in the trace already, and caches are sampled every second.
            Self::Disturbed { .. } | Self::Cached { .. } => return None,
            Self::Acted(activity) => return activity.text(),
            Self::Note(text) | Self::Log(text) => text.clone(),
            Self::Panicked(text) => format!("panicked: {text}"),
        })
    }

    /// Returns the line of a call of a handler.
    fn call(&self) -> Option<String> {
        match self {
            Self::Began {
                handler,
                key,
                run,
                attempt,
                object,
                causes,
                ..
            } => {
                let object = object.as_ref().map_or_else(
                    || "gone".to_owned(),
                    |shown| format!("at {}", shown.version),
                );
                Some(format!(
                    "{}: {} {key} {object} (run {run}, attempt {attempt}; {causes})",
                    handler.name,
                    handler.kind.kind()
                ))
            }
            Self::Ended {
                handler,
                key,
                run,
                result,
                next,
            } => {
                let result = match result {
                    // Neither has a result: only the next call tells a panic from a dropped future.
                    None if *next == Next::Panicked => "panicked",
                    None => "dropped",
                    Some(Ok(())) => "done",
                    Some(Err(error)) => error,
                };
                Some(format!(
                    "{}: {} {key} {result} (run {run})",
                    handler.name,
                    handler.kind.kind()
                ))
            }
            _ => None,
        }
    }

    /// Returns the line about a change, a progress or a use of a cache.
    fn cached(&self) -> Option<String> {
        Some(match self {
            Self::Published { subscriber, change } => format!(
                "published {} to {}: {}",
                subscriber.kind.kind(),
                subscriber.number,
                published(change)
            ),
            Self::Wrote {
                kind, key, written, ..
            } => match written {
                Written::State(version) => format!("wrote {} {key}: {version}", kind.kind()),
                Written::Gone(_) => format!("wrote {} {key}: gone", kind.kind()),
            },
            Self::Selected {
                kind, selection, ..
            } => format!("selects {}: {selection:?}", kind.kind()),
            Self::Unsubscribed(subscriber) => format!(
                "unsubscribed {} from {}",
                subscriber.number,
                subscriber.kind.kind()
            ),
            Self::Read {
                kind, key, object, ..
            } => {
                let object = object
                    .as_ref()
                    .map_or_else(|| "nothing".to_owned(), |shown| shown.version.to_string());
                format!("read {} {key}: {object}", kind.kind())
            }
            _ => return None,
        })
    }
}

fn committed(commit: &Commit) -> Option<String> {
    match commit {
        // With its holder, without which an election cannot be followed in the trace.
        Commit::Stored(object) if object.resource() == LEASES => Some(format!(
            "commit {} {} {}{}",
            object.revision(),
            object.resource(),
            object.key(),
            held(object)
        )),
        Commit::Stored(object) => Some(format!(
            "commit {} {} {}{}",
            object.revision(),
            object.resource(),
            object.key(),
            if object.is_deleting() {
                " (deleting)"
            } else {
                ""
            }
        )),
        Commit::Removed { last } => Some(format!(
            "commit {} {} {} removed",
            last.revision(),
            last.resource(),
            last.key()
        )),
        Commit::Reset { revision } => Some(format!("the cluster is as at version {revision}")),
        _ => None,
    }
}

/// Returns the holder of a lease, in words.
fn held(lease: &StoredObject) -> String {
    let value = lease.value();
    let holder = value["spec"]["holderIdentity"]
        .as_str()
        .filter(|holder| !holder.is_empty());
    let held = holder.map_or_else(|| " is free".to_owned(), |it| format!(" is held by {it}"));
    match value["metadata"]["annotations"]["lariat.dev/ring-acks"].as_str() {
        Some(acks) => format!("{held}, acks {acks}"),
        None => held,
    }
}

fn published(change: &Change) -> String {
    match change {
        Change::Added { object, initial } => {
            let initial = if *initial { ", initial" } else { "" };
            format!("added {} at {}{initial}", object.key(), version_of(object))
        }
        Change::Updated { old, new } => {
            format!(
                "updated {} from {} to {}",
                new.key(),
                version_of(old),
                version_of(new)
            )
        }
        Change::Deleted { last } => format!("deleted {} at {}", last.key(), version_of(last)),
        Change::Resynced { object } => format!("resynced {}", object.key()),
        _ => "something else".to_owned(),
    }
}
