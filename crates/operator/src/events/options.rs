//! The options of a recorder.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;

use super::Event;

/// The API through which Events are written.
///
/// Each API also returns the Events that were written through the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventApi {
    /// `v1`: equal events are counted in one Event.
    ///
    /// The Event has the times of the first and the last one, which `kubectl describe` and `kubectl get events` show as
    /// `5m (x12 over 30m)`. Different notes are separate Events, until there are too many of them.
    #[default]
    Core,
    /// `events.k8s.io/v1`: events that differ only in the note are one series.
    ///
    /// The Event has the first note. It is written at the beginning of the series, every 30 minutes, and 6 minutes
    /// after the last event. This takes fewer writes, but the count lags behind.
    Events,
}

/// How a [`Recorder`](super::Recorder) aggregates, counts and limits.
///
/// The defaults are those of client-go.
///
/// ```
/// use std::time::Duration;
/// use lariat::operator::EventOptions;
///
/// let options = EventOptions::default().burst(50).refill(Duration::from_secs(60));
/// # let _ = options;
/// ```
#[derive(Clone)]
#[must_use = "options do nothing until a recorder has them"]
pub struct EventOptions {
    pub(super) api: EventApi,
    pub(super) burst: u32,
    pub(super) refill: Duration,
    pub(super) aggregate_after: usize,
    pub(super) aggregate_within: Duration,
    pub(super) spam_key: Option<Arc<SpamKey>>,
}

/// Returns the key of an event; events with the same key share a limit.
pub(super) type SpamKey = dyn Fn(&ObjectReference, &Event) -> String + Send + Sync;

impl EventOptions {
    /// Sets the API through which Events are written (default [`EventApi::Core`]).
    pub fn api(self, api: EventApi) -> Self {
        Self { api, ..self }
    }

    /// Sets the number of events per object that are written in a burst (default 25).
    ///
    /// Zero writes none. An event over the limit is not written. If it repeats an existing Event, the next write counts
    /// it.
    pub fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// Sets the time after which one more event may be written (default 5 minutes).
    ///
    /// Zero means no limit, whatever the burst is.
    pub fn refill(self, refill: Duration) -> Self {
        Self { refill, ..self }
    }

    /// Sets the number of different notes at which events are combined (default 10).
    ///
    /// It counts the notes about one object with the same type and reason. Zero combines none, and one combines all.
    /// [`EventApi::Events`] ignores it.
    pub fn aggregate_after(self, notes: usize) -> Self {
        let aggregate_after = notes;
        Self {
            aggregate_after,
            ..self
        }
    }

    /// Sets the time without a similar event that ends a combination (default 10 min).
    ///
    /// Zero combines only events of the same instant.
    pub fn aggregate_within(self, time: Duration) -> Self {
        let aggregate_within = time;
        Self {
            aggregate_within,
            ..self
        }
    }

    /// Sets the key of the limit (default: the object that the event is about).
    ///
    /// Events with the same key share a limit. The function runs on the recorder's task: it must not block or panic.
    ///
    /// ```
    /// use lariat::operator::EventOptions;
    ///
    /// // One limit for each namespace instead of each object.
    /// let options = EventOptions::default()
    ///     .spam_key(|about, _| about.namespace.clone().unwrap_or_default());
    /// # let _ = options;
    /// ```
    pub fn spam_key(
        self,
        key: impl Fn(&ObjectReference, &Event) -> String + Send + Sync + 'static,
    ) -> Self {
        let spam_key: Option<Arc<SpamKey>> = Some(Arc::new(key));
        Self { spam_key, ..self }
    }
}

impl Default for EventOptions {
    fn default() -> Self {
        Self {
            api: EventApi::default(),
            burst: 25,
            refill: Duration::from_secs(300),
            aggregate_after: 10,
            aggregate_within: Duration::from_secs(600),
            spam_key: None,
        }
    }
}

impl fmt::Debug for EventOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventOptions")
            .field("api", &self.api)
            .field("burst", &self.burst)
            .field("refill", &self.refill)
            .field("aggregate_after", &self.aggregate_after)
            .field("aggregate_within", &self.aggregate_within)
            .field("spam_key", &self.spam_key.is_some())
            .finish()
    }
}
