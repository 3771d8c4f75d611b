//! The states of a process.

use lariat_cache::{KindStatus, Phase};
use lariat_controller::ControllerStatus;
use lariat_sim::internals::LiveProcess;

/// A state of a process; it may be in several at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessState {
    /// A cache is filled for the first time.
    Filling,
    /// A filled cache is read again, or waits for a watch to be opened again.
    LoadingAgain,
    /// All caches are kept by watches.
    Watching,
    /// A request failed, and is tried again after a pause.
    BackingOff,
    /// A handler is being called.
    Calling,
    /// A write was sent, and is not answered.
    Writing,
    /// Keys wait for a handler at its limit of calls.
    AtLimit,
    /// A handler was registered after the cache was filled, and has not been called.
    LateHandler,
    /// The program was asked to end.
    Stopping,
    /// The process does not run.
    Paused,
    /// It was killed or ended before.
    Restarted,
}

impl ProcessState {
    pub(super) const ALL: [Self; 11] = [
        Self::Filling,
        Self::LoadingAgain,
        Self::Watching,
        Self::BackingOff,
        Self::Calling,
        Self::Writing,
        Self::AtLimit,
        Self::LateHandler,
        Self::Stopping,
        Self::Paused,
        Self::Restarted,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Filling => "filling",
            Self::LoadingAgain => "loading again",
            Self::Watching => "watching",
            Self::BackingOff => "backing off",
            Self::Calling => "calling",
            Self::Writing => "writing",
            Self::AtLimit => "at limit",
            Self::LateHandler => "late handler",
            Self::Stopping => "stopping",
            Self::Paused => "paused",
            Self::Restarted => "restarted",
        }
    }
}

/// The states of a process at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcessStates(u16);

impl ProcessStates {
    pub(crate) fn set(&mut self, state: ProcessState, is: bool) {
        // It never clears a bit: one cache or handler in the state is enough.
        self.0 |= u16::from(is) << state as u16;
    }

    /// Returns the states of a process.
    pub(crate) fn of(process: &LiveProcess) -> Self {
        let mut states = Self::default();
        states.set(ProcessState::Paused, process.is_paused);
        states.set(ProcessState::Restarted, process.is_restarted);
        states.set(ProcessState::Stopping, process.is_stopping);
        states.set(ProcessState::Writing, process.is_writing);
        states.with(&process.caches, &process.controllers)
    }

    /// Adds the states of the caches and controllers of a process.
    fn with(mut self, caches: &[KindStatus], controllers: &[ControllerStatus]) -> Self {
        let is_loading = |cache: &KindStatus| matches!(cache.phase, Phase::Listing { .. });
        let is_again = |cache: &&KindStatus| is_loading(cache) || cache.interrupted.is_some();
        let mut filled = caches.iter().filter(|cache| cache.loads > 0);
        self.set(
            ProcessState::LoadingAgain,
            filled.any(|cache| is_again(&cache)),
        );
        let mut first = caches.iter().filter(|cache| cache.loads == 0);
        self.set(ProcessState::Filling, first.any(is_loading));
        let is_kept = |cache: &KindStatus| cache.phase == Phase::Synced && !is_again(&cache);
        self.set(
            ProcessState::Watching,
            !caches.is_empty() && caches.iter().all(is_kept),
        );
        self.set(
            ProcessState::BackingOff,
            caches.iter().any(|cache| cache.retry_in.is_some()),
        );
        for controller in controllers {
            // Before that every handler waits, and none of them is late.
            let is_filled = controller.cache.loads > 0 && controller.workers.is_some();
            self.set(ProcessState::Calling, controller.queue.processing > 0);
            for handler in &controller.handlers {
                self.set(ProcessState::AtLimit, handler.waiting > 0);
                self.set(ProcessState::LateHandler, is_filled && handler.calls == 0);
            }
        }
        self
    }

    pub(super) fn has(self, state: ProcessState) -> bool {
        self.0 >> state as u16 & 1 == 1
    }
}
