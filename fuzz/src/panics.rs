//! Panics under libFuzzer.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;

use lariat_cluster_fuzz::Target;

/// What the last panic said, with its backtrace.
static LAST: Mutex<String> = Mutex::new(String::new());

/// Keeps what panics say instead of printing it, and lets them unwind.
///
/// The cluster and the rules of definitions catch panics of what they call. That is no finding as long as the answer
/// is right, so the hook must not abort.
pub fn quiet_panics() {
    panic::set_hook(Box::new(|info| {
        let trace = std::backtrace::Backtrace::capture();
        if let Ok(mut last) = LAST.lock() {
            *last = format!("{info}\n{trace}");
        }
    }));
}

/// Runs a target, and prints what a panic said that the target did not catch.
///
/// # Panics
///
/// If the target does.
pub fn run(target: Target, data: &[u8]) {
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(data)));
    if let Err(panic) = outcome {
        if let Ok(last) = LAST.lock() {
            eprintln!("{last}");
        }
        panic::resume_unwind(panic);
    }
}
