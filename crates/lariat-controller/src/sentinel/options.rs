//! What can be chosen for the sentinel.

use std::time::Duration;

/// When a key counts as being in a hot loop, and how it is slowed down then.
///
/// Three [patterns](crate::Pattern) are known. Work that is done step by step, by runs that rely on the watch of what
/// they wrote, is none of them: a run that writes an object or a field that no earlier run of the row wrote makes
/// progress, and the count begins with it again. Another value of a field is no progress, because a counter or a time
/// has one in each run; and no more than 4096 objects and fields of a row are progress, so a loop that creates objects
/// without end is found too. A key that is found out is named in a warning, once in ten minutes, and in the kind's
/// [status](crate::ControllerStatus::hot_loops), until it has been well for ten minutes. Its runs wait, a second at
/// first and then twice as long each time; a change by somebody else and a deletion do not wait, unless that somebody
/// is part of the loop.
///
/// Seen is what a handler enqueues without delay, and what it writes through the factory's clients, on the task it
/// is called on. What a handler writes
/// from tasks it spawns, or through another client, is taken for somebody else's.
///
/// ```
/// use lariat_controller::{ControllerOptions, Sentinel};
///
/// let options = ControllerOptions::default().sentinel(Sentinel::default().runs(50));
/// # let _ = options;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "options do nothing until a factory has them"]
pub struct Sentinel {
    pub(super) enabled: bool,
    pub(super) runs: u32,
    pub(super) undone: u32,
    pub(super) idle_writes: u32,
    pub(super) shortest_pause: Duration,
    pub(super) longest_pause: Duration,
}

impl Default for Sentinel {
    fn default() -> Self {
        Self {
            enabled: true,
            runs: 25,
            undone: 5,
            idle_writes: 60,
            shortest_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(60),
        }
    }
}

impl Sentinel {
    /// Finds nothing, and slows nothing down.
    pub fn off() -> Self {
        Self {
            enabled: false,
            ..Self::default()
        }
    }

    /// Sets how many runs in a row, each caused by what the one before wrote or enqueued and by nothing else, make a
    /// loop, counted from the last that wrote an object or a field for the first time in the row (default 25; zero
    /// counts as 1).
    pub fn runs(self, runs: u32) -> Self {
        let runs = runs.max(1);
        Self { runs, ..self }
    }

    /// Sets how many times a field has to be undone by somebody else and written again (default 5 times, with
    /// ten minutes for each; zero counts as 1).
    pub fn undone(self, times: u32) -> Self {
        let undone = times.max(1);
        Self { undone, ..self }
    }

    /// Sets how many writes in a minute may change nothing (default 60; zero counts as 1).
    pub fn idle_writes(self, in_a_minute: u32) -> Self {
        let idle_writes = in_a_minute.max(1);
        Self {
            idle_writes,
            ..self
        }
    }

    /// Sets how long a run waits at first and at most (default 1 second and 1 minute; zero only names what
    /// is found).
    pub fn pauses(self, shortest: Duration, longest: Duration) -> Self {
        Self {
            shortest_pause: shortest,
            longest_pause: longest.max(shortest),
            ..self
        }
    }
}
