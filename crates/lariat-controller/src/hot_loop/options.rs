//! The options of hot loop detection.

use std::time::Duration;

/// Options for detecting and slowing down hot loops.
///
/// A hot loop, or livelock, is a key whose runs cause its next run. Three [patterns](crate::HotLoopPattern) are
/// detected.
///
/// A detected key is reported in a warning, at most every ten minutes, and in the kind's
/// [status](crate::ControllerStatus::hot_loops), until the loop has not been seen for ten minutes. Its runs are
/// delayed: by one second at first, and then twice as long each time, up to a minute. Changes by other writers and
/// deletions are not delayed, unless the other writer is part of the loop.
///
/// A handler that works step by step, each step triggered by the write of the step before, is no hot loop. A run makes
/// progress if it writes an object or a field that no earlier run of its chain wrote, and the count starts again. A new
/// value of the same field is no progress, because a counter or a timestamp has a new value in each run. At most 4,096
/// objects and fields of a chain count as progress, so a loop that creates objects forever is detected too.
///
/// The detector knows the keys that a handler enqueues without delay, and the writes through the factory's clients on
/// the task of the call. Writes on spawned tasks or through other clients count as those of another writer.
///
/// ```
/// use lariat::controller::HotLoopOptions;
/// use lariat::ControllerOptions;
///
/// let options = ControllerOptions::default().hot_loops(HotLoopOptions::default().runs(50));
/// # let _ = options;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "options do nothing until a factory has them"]
pub struct HotLoopOptions {
    pub(super) enabled: bool,
    pub(super) runs: u32,
    pub(super) reverts: u32,
    pub(super) unchanged_writes: u32,
    pub(super) first_delay: Duration,
    pub(super) longest_delay: Duration,
}

impl Default for HotLoopOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            runs: 25,
            reverts: 5,
            unchanged_writes: 60,
            first_delay: Duration::from_secs(1),
            longest_delay: Duration::from_secs(60),
        }
    }
}

impl HotLoopOptions {
    /// Disables the detection of hot loops.
    pub fn off() -> Self {
        Self {
            enabled: false,
            ..Self::default()
        }
    }

    /// Sets how many runs in a chain count as a hot loop (default 25).
    ///
    /// In a chain, each run is caused only by writes and enqueues of the run before. Runs are counted from the last one
    /// that made progress. Zero counts as 1.
    pub fn runs(self, runs: u32) -> Self {
        let runs = runs.max(1);
        Self { runs, ..self }
    }

    /// Sets how often another writer must revert a field (default 5).
    ///
    /// The handler must have written the field again each time, within ten minutes. Zero counts as 1.
    pub fn reverts(self, times: u32) -> Self {
        let reverts = times.max(1);
        Self { reverts, ..self }
    }

    /// Sets how many writes of an object per minute may change nothing (default 60).
    ///
    /// One more counts as a hot loop. Zero counts as 1.
    pub fn unchanged_writes(self, in_a_minute: u32) -> Self {
        let unchanged_writes = in_a_minute.max(1);
        Self {
            unchanged_writes,
            ..self
        }
    }

    /// Sets the first and the longest delay of a run (default 1 second and 1 minute).
    ///
    /// If the first delay is zero, hot loops are reported but not delayed.
    pub fn delays(self, first: Duration, longest: Duration) -> Self {
        Self {
            first_delay: first,
            longest_delay: longest.max(first),
            ..self
        }
    }
}
