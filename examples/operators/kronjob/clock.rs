//! The wall clock as a parameter.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// The maximum sleep. Setting the clock, or suspending the machine, moves the wall clock but not timers that are
/// already set.
const NAP: Duration = Duration::from_secs(600);

/// The wall clock as a parameter: tests simulate hours instantly, and the story runs a minute per second.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    pace: u32,
}

impl Clock {
    /// Creates the real wall clock.
    #[must_use]
    pub fn wall() -> Self {
        Self::new(present)
    }

    /// Creates a clock that calls a function for the time.
    #[must_use]
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let now = Arc::new(now);
        Self { now, pace: 1 }
    }

    /// Creates a clock that starts at the present time and runs `pace` times as fast, by tokio's time, which tests can
    /// pause.
    #[must_use]
    pub fn fast(pace: u32) -> Self {
        let (started, started_at) = (Instant::now(), present());
        let now = move || started_at + started.elapsed() * pace;
        Self {
            pace,
            ..Self::new(now)
        }
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// Returns the timer duration until a time; at most ten minutes, to check the clock again.
    #[must_use]
    pub fn until(&self, time: Timestamp) -> Duration {
        let left = Duration::try_from(self.now().duration_until(time)).unwrap_or_default();
        (left / self.pace).min(NAP)
    }
}

/// Returns the time of Lariat's wall clock, which a simulation sets.
fn present() -> Timestamp {
    lariat::core::clock::now()
        .try_into()
        .unwrap_or(Timestamp::MAX)
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
