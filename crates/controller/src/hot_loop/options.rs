//! The options of hot loop detection.

/// Options for detecting hot loops.
///
/// A hot loop, or livelock, is a key whose runs cause its next run. Two [patterns](crate::HotLoopPattern) are detected.
///
/// A detected key is reported: in one warning, and in the kind's [status](crate::ControllerStatus::hot_loops) until the
/// loop has not been seen for ten minutes. Its runs are not delayed, unless a handler's
/// [options](crate::HandlerOptions::slow_hot_loops) ask for that.
///
/// Work in steps, each triggered by the write of the step before, looks like a loop until it ends. It is reported if it
/// takes as many runs.
///
/// The detector knows the keys that a handler enqueues without delay, and the writes through the factory's clients on
/// the task of the call. Writes on spawned tasks or through other clients count as those of another writer.
///
/// ```
/// use lariat::controller::HotLoopOptions;
/// use lariat::ControllerOptions;
///
/// let options = ControllerOptions::default().hot_loops(HotLoopOptions::default().runs(200));
/// # let _ = options;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "options do nothing until a factory has them"]
pub struct HotLoopOptions {
    /// `None` if hot loops are not detected.
    pub(super) runs: Option<u32>,
}

impl Default for HotLoopOptions {
    fn default() -> Self {
        Self { runs: Some(60) }
    }
}

impl HotLoopOptions {
    /// Disables the detection of hot loops.
    pub fn off() -> Self {
        Self { runs: None }
    }

    /// Sets how many runs of a key in a row count as a hot loop.
    ///
    /// The default is 60; zero counts as one. A run counts if it was caused by writes and enqueues of runs of this
    /// process only, and the latest of them was for the same object as that of the run before, at most two minutes ago.
    pub fn runs(self, runs: u32) -> Self {
        Self {
            runs: Some(runs.max(1)),
        }
    }
}
