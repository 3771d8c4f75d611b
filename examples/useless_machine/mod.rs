//! The useless machine of the kubebuilder lecture: whoever switches it on, it switches itself off.
//!
//! The lecture goes in stages, and so do the files:
//!
//! 1. [`stage1`]: a Machine has a `switchPosition`; what is not `down` is put down, at once.
//! 2. [`stage2`]: it waits before it does, in the handler, and so keeps every other machine waiting too.
//! 3. [`stage3`]: it notes when it saw the switch, and asks to be called again.
//! 4. [`stage4`]: a Machine has Switches, objects of their own, and puts down one at a time.

pub mod lever;
pub mod stage1;
pub mod stage2;
pub mod stage3;
pub mod stage4;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;

/// How long a machine waits, by which clock.
///
/// What is waited for has to outlive the operator, so it is written down in wall-clock time; that is a parameter, for
/// tests to turn.
#[derive(Clone)]
pub struct Pace {
    /// How long.
    pub delay: Duration,
    /// What time it is.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Pace {
    /// Waits by the clock of the machine it runs on.
    #[must_use]
    pub fn new(delay: Duration) -> Self {
        let clock = Arc::new(|| lariat::clock::now().try_into().unwrap_or(Timestamp::MAX));
        Self { delay, clock }
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns a time that was noted; none if the clock was put back since, which makes the note worthless.
    fn noted(&self, time: Option<&MicroTime>) -> Option<Timestamp> {
        let MicroTime(time) = time?;
        Some(*time).filter(|time| *time <= self.now())
    }

    /// Returns how much is left of the delay that began then.
    fn left(&self, since: Timestamp) -> Duration {
        let passed = Duration::try_from(self.now().duration_since(since));
        self.delay.saturating_sub(passed.unwrap_or_default())
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace")
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}
