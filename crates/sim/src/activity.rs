//! Events of a process's factory: starts, stops, queues and handlers.
#![expect(missing_docs, reason = "only the hidden `internals` show it")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{KindStatus, Phase, Storage};
use lariat_controller::ControllerStatus;
use lariat_core::{Gvk, ObjectKey};

use crate::actors::{HandlerId, IncarnationId, Subscriber};
use crate::observed::number_of;

/// Something an incarnation of a process did, or its state at one time.
#[derive(Debug, Clone)]
pub struct Activity {
    pub incarnation: IncarnationId,
    pub what: ActivityKind,
}

/// The kind of an activity.
#[derive(Debug, Clone)]
pub enum ActivityKind {
    /// A start of the factory began; with how often each cache had been filled before.
    Starting(BTreeMap<Gvk, u64>),
    /// A stop began, with this grace period.
    Stopping(Duration),
    /// A stop returned.
    Stopped,
    /// The process does not run from now on.
    Paused,
    /// The process runs again.
    Resumed,
    /// A handler is registered; `limit` is its concurrency.
    Registered {
        kind: Gvk,
        name: Arc<str>,
        limit: Option<usize>,
    },
    /// A handler is deregistered, and the call has returned.
    Deregistered { kind: Gvk, name: Arc<str> },
    /// A kind is to be listed again, whose cache has been read so many times.
    Relisted { kind: Gvk, loads: u64 },
    /// Objects of a kind are to be fetched.
    Loads(Gvk),
    /// A subscription began.
    Subscribed(Subscriber),
    /// A key was enqueued for all handlers.
    Enqueued {
        kind: Gvk,
        key: ObjectKey,
        after: Duration,
    },
    /// The statuses of the process's controllers, between two turns.
    Sampled(Vec<Sample>),
}

/// One controller at a moment.
#[derive(Debug, Clone)]
pub struct Sample {
    pub kind: Gvk,
    /// None while no worker takes keys.
    pub workers: Option<usize>,
    /// Keys in line that no worker has.
    pub ready: usize,
    /// Keys with a worker.
    pub held: usize,
    /// Calls of deregistered handlers, whose workers are replaced.
    pub leaving: usize,
    /// Keys dequeued since the controller was made.
    pub dequeued: u64,
    /// The number of keys that wait for each handler, without a worker.
    pub waiting: Vec<(Arc<str>, usize)>,
    pub is_synced: bool,
    /// Whether content is fetched when a handler needs it.
    pub is_on_demand: bool,
    /// The resource version that the cache has reached.
    pub version: u64,
}

/// The progress of a cache.
#[derive(Debug, Clone)]
pub struct CacheProgress {
    pub kind: Gvk,
    /// The number of times it has been filled.
    pub loads: u64,
    /// The version up to which it is complete; none while it is filled.
    pub complete: Option<u64>,
}

impl CacheProgress {
    pub(crate) fn of(status: &KindStatus) -> Self {
        // A cache that is being filled has a version too, but not all objects of that version.
        let is_filled = status.phase == Phase::Synced;
        let version = status.version.as_ref().filter(|_| is_filled);
        Self {
            kind: status.gvk.clone(),
            loads: status.loads,
            complete: version.map(|version| number_of(&version.to_string())),
        }
    }
}

impl Sample {
    pub(crate) fn of(status: &ControllerStatus) -> Self {
        let queue = &status.queue;
        let handlers = status.handlers.iter();
        let version = status.cache.version.as_ref();
        Self {
            kind: status.cache.gvk.clone(),
            workers: status.workers,
            // The depth includes keys that were added again while in processing; no other worker may take these.
            ready: queue.depth().saturating_sub(queue.dirty),
            held: queue.processing,
            leaving: status.leaving,
            dequeued: queue.dequeued,
            waiting: handlers
                .map(|each| (Arc::clone(&each.name), each.waiting))
                .collect(),
            is_on_demand: status.cache.storage == Storage::OnDemand,
            is_synced: status.cache.phase == Phase::Synced,
            version: version.map_or(0, |version| number_of(&version.to_string())),
        }
    }
}

impl Activity {
    /// Returns a handler of this incarnation.
    #[must_use]
    pub fn handler(&self, kind: &Gvk, name: &Arc<str>) -> HandlerId {
        HandlerId {
            incarnation: self.incarnation.clone(),
            kind: kind.clone(),
            name: Arc::clone(name),
        }
    }

    /// Returns the handler that is registered.
    #[must_use]
    pub fn registered(&self) -> Option<HandlerId> {
        let ActivityKind::Registered { kind, name, .. } = &self.what else {
            return None;
        };
        Some(self.handler(kind, name))
    }

    /// Returns the handler that is deregistered.
    #[must_use]
    pub fn deregistered(&self) -> Option<HandlerId> {
        let ActivityKind::Deregistered { kind, name } = &self.what else {
            return None;
        };
        Some(self.handler(kind, name))
    }

    /// Returns the line of the trace; none for samples, which repeat other lines.
    pub(crate) fn text(&self) -> Option<String> {
        Some(match &self.what {
            ActivityKind::Starting(_) => "the factory starts".to_owned(),
            ActivityKind::Stopping(_) => "the factory stops".to_owned(),
            ActivityKind::Stopped => "the factory has stopped".to_owned(),
            ActivityKind::Relisted { kind, loads } => {
                format!("{} is to be listed again after {loads} lists", kind.kind())
            }
            ActivityKind::Loads(kind) => format!("objects of {} are to be fetched", kind.kind()),
            ActivityKind::Paused => format!("{} is paused", self.incarnation.process),
            ActivityKind::Resumed => format!("{} runs again", self.incarnation.process),
            ActivityKind::Registered { kind, name, limit } => {
                let limit = limit.map_or_else(String::new, |limit| format!(", {limit} at a time"));
                format!("registered {name} for {}{limit}", kind.kind())
            }
            ActivityKind::Deregistered { kind, name } => {
                format!("deregistered {name} from {}", kind.kind())
            }
            ActivityKind::Subscribed(subscriber) => format!(
                "subscribed {} to {}",
                subscriber.number,
                subscriber.kind.kind()
            ),
            ActivityKind::Enqueued { kind, key, after } => {
                format!("enqueued {} {key} after {after:?}", kind.kind())
            }
            // A sample every second would hide the lines that show what happened.
            ActivityKind::Sampled(_) => return None,
        })
    }
}
