//! The useless machine of the kubebuilder lecture: it switches itself off whenever it is switched on.
//!
//! The lecture goes in stages, and so do the files:
//!
//! 1. [`stage1`]: a Machine has a `switchPosition`; the reconciler puts it down immediately.
//! 2. [`stage2`]: it sleeps before, in the handler, and so delays every other machine.
//! 3. [`stage3`]: it records when it saw the switch, and requeues.
//! 4. [`stage4`]: a Machine owns Switches, separate objects, and puts down one at a time.

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

/// The delay of a machine, and its clock.
///
/// The waiting time must survive a restart, so it is stored as wall-clock time; the clock is a parameter for tests.
#[derive(Clone)]
pub struct Pace {
    /// The delay.
    pub delay: Duration,
    /// Returns the time.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Pace {
    /// Creates a delay by the system clock.
    #[must_use]
    pub fn new(delay: Duration) -> Self {
        let clock = Arc::new(|| {
            lariat::core::clock::now()
                .try_into()
                .unwrap_or(Timestamp::MAX)
        });
        Self { delay, clock }
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns a recorded time; none if the clock was set back since, which invalidates it.
    fn noted(&self, time: Option<&MicroTime>) -> Option<Timestamp> {
        let MicroTime(time) = time?;
        Some(*time).filter(|time| *time <= self.now())
    }

    /// Returns the rest of the delay that started at `since`.
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
