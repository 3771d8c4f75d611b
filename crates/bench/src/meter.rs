//! What a run costs: time, CPU, memory.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Measures from its creation on.
#[derive(Debug)]
pub(crate) struct Meter {
    begun: Instant,
    cpu: Duration,
}

impl Meter {
    pub(crate) fn begin() -> Self {
        Self {
            begun: now(),
            cpu: cpu(),
        }
    }

    /// Returns the seconds that passed, and those the process computed.
    pub(crate) fn seconds(&self) -> (f64, f64) {
        let wall = now() - self.begun;
        (wall.as_secs_f64(), (cpu() - self.cpu).as_secs_f64())
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures what the clock on the wall says"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

fn cpu() -> Duration {
    clock(ClockId::ProcessCPUTime)
}

/// Returns the microseconds of a clock that all processes of the machine share.
pub(crate) fn micros() -> u64 {
    // Unlike `Instant`, its value has a meaning outside of this process.
    clock(ClockId::Monotonic).as_micros() as u64
}

/// Returns the seconds this thread has computed.
pub(crate) fn thread_seconds() -> f64 {
    clock(ClockId::ThreadCPUTime).as_secs_f64()
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Returns the resident memory of the process in MB; 0 if unknown.
pub(crate) fn resident_mb() -> f64 {
    status_mb("VmRSS:")
}

/// Returns the peak resident memory of the process in MB; 0 if unknown.
pub(crate) fn peak_mb() -> f64 {
    status_mb("VmHWM:")
}

/// Lets [`peak_mb`] begin again with what is held now.
pub(crate) fn forget_peak() -> std::io::Result<()> {
    // See proc(5): 5 resets `VmHWM`.
    fs::write("/proc/self/clear_refs", "5")
}

/// Returns the voluntary context switches of this thread.
pub(crate) fn waits() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let name = "voluntary_ctxt_switches:";
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().parse().ok()).unwrap_or(0)
}

fn status_mb(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kilobytes.unwrap_or(0.0) * 1024.0 / 1e6
}
