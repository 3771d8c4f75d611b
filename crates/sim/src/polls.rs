//! The order in which a runtime polls its tasks, as one number: it differs as soon as an order differs, long before
//! what that leads to can be seen in the trace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Builder;

/// A hash over the polls of one runtime.
#[derive(Debug, Clone, Default)]
pub(crate) struct Polls(Arc<AtomicU64>);

impl Polls {
    /// Watches the polls of the runtime that is built.
    ///
    /// A task goes by the place that spawned it: its number is the process's, and other runs count along in it.
    #[cfg(tokio_unstable)]
    pub(crate) fn of(builder: &mut Builder) -> Self {
        let polls = Self::default();
        let noted = polls.clone();
        builder.on_before_task_poll(move |task| {
            let at = task.spawned_at();
            // The length tells most files apart, and is cheaper than the name.
            noted.add(u64::from(at.line()) << 32 | at.file().len() as u64);
        });
        polls
    }

    /// Watches nothing: tokio reports polls only with `--cfg tokio_unstable`.
    #[cfg(not(tokio_unstable))]
    pub(crate) fn of(_: &mut Builder) -> Self {
        Self::default()
    }

    #[cfg(tokio_unstable)]
    fn add(&self, task: u64) {
        // All polls happen on the thread of the run; the next one sees this one.
        let hash = mix(self.0.load(Ordering::Relaxed), task);
        self.0.store(hash, Ordering::Relaxed);
    }

    pub(crate) fn hash(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Mixes a number into a hash, as FNV-1a does a byte.
pub(crate) fn mix(hash: u64, number: u64) -> u64 {
    (hash ^ number)
        .wrapping_mul(0x0100_0000_01b3)
        .rotate_left(23)
}
