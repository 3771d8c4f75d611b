//! What time it is, for who acts by the time of day.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// How long to sleep at most. A clock that is set, or a machine that was asleep, moves the time of day but not the
/// timers that were set before.
const NAP: Duration = Duration::from_secs(600);

/// The time of day, as a parameter: tests play hours in no time, and the story plays a minute per second.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    pace: u32,
}

impl Clock {
    /// The clock on the wall.
    #[must_use]
    pub fn wall() -> Self {
        Self::new(present)
    }

    /// A clock that reads what a function says.
    #[must_use]
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let now = Arc::new(now);
        Self { now, pace: 1 }
    }

    /// A clock that is right now, and goes so many times as fast from then on; by tokio's time, which tests can pause.
    #[must_use]
    pub fn fast(pace: u32) -> Self {
        let (started, started_at) = (Instant::now(), present());
        let now = move || started_at + started.elapsed() * pace;
        Self {
            pace,
            ..Self::new(now)
        }
    }

    /// Returns what time it is.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// Returns how long to wait for a time, as timers count; at most ten minutes, to look at the clock again.
    #[must_use]
    pub fn until(&self, time: Timestamp) -> Duration {
        let left = Duration::try_from(self.now().duration_until(time)).unwrap_or_default();
        (left / self.pace).min(NAP)
    }
}

/// Returns what time it is; of Lariat's wall clock, which a simulation sets.
fn present() -> Timestamp {
    lariat::clock::now().try_into().unwrap_or(Timestamp::MAX)
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
