//! The options of a recorder.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;

use super::Event;

/// Through which API Events are written. Both show what the other wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventApi {
    /// `v1`. Repetitions are counted in the Event, which has the times of the first and the last: what `kubectl
    /// describe` and `kubectl get events` show, as `5m (x12 over 30m)`. Notes that differ are Events of their own
    /// until there are too many of them.
    #[default]
    Core,
    /// `events.k8s.io/v1`. What differs in its note only is one series from the start, which shows the first note.
    /// It is written when it begins, every 30 minutes, and 6 minutes after its last event, so that it costs few
    /// writes, and counts late.
    Events,
}

/// How a recorder combines, counts and limits Events. The default is what client-go does.
///
/// ```
/// use std::time::Duration;
/// use lariat_operator::EventOptions;
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

/// Says which events share a limit.
pub(super) type SpamKey = dyn Fn(&ObjectReference, &Event) -> String + Send + Sync;

impl EventOptions {
    /// Sets the API (default [`EventApi::Core`]).
    pub fn api(self, api: EventApi) -> Self {
        Self { api, ..self }
    }

    /// Sets how many events about one object are written at once (default 25; 0 writes none).
    ///
    /// What is over the limit is not written; if it repeats an Event there is, the next write counts it.
    pub fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// Sets the time after which one more may be written (default 5 min; zero sets no limit, whatever the burst).
    pub fn refill(self, refill: Duration) -> Self {
        Self { refill, ..self }
    }

    /// Sets which number of different notes is combined into one Event (default 10; 0 combines none, 1 all).
    ///
    /// For notes about one object, of one type and reason; [`EventApi::Events`] has no use for it.
    pub fn aggregate_after(self, notes: usize) -> Self {
        let aggregate_after = notes;
        Self {
            aggregate_after,
            ..self
        }
    }

    /// Sets after how long without such an event counting notes begins anew (default 10 min; zero counts only those
    /// of the same moment).
    pub fn aggregate_within(self, time: Duration) -> Self {
        let aggregate_within = time;
        Self {
            aggregate_within,
            ..self
        }
    }

    /// Sets which events share a limit: those with the same key (default: those about the same object).
    ///
    /// It is called on the recorder's task and must neither block nor panic.
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
