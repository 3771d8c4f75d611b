//! Panics of simulated programs: kept as violations instead of printed.

use std::cell::RefCell;
use std::panic;
use std::sync::Once;

/// The message of a panic that a plan asked for; no other is expected.
pub const PLANNED: &str = "a planned panic";

thread_local! {
    /// The panics of the run on this thread; none outside of a run.
    static NOTED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Keeps panics of this thread from now on.
pub(crate) fn begin() {
    // One hook for all threads, since runs of different seeds share it; each thread says for itself whether it notes.
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let is_noted = NOTED.with(|noted| {
                // A panic in here would otherwise panic again in the hook, which aborts the process.
                let Ok(mut noted) = noted.try_borrow_mut() else {
                    return false;
                };
                let Some(noted) = noted.as_mut() else {
                    return false;
                };
                let payload = info.payload();
                let text = payload
                    .downcast_ref::<&str>()
                    .copied()
                    .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
                    .unwrap_or("a panic without a message");
                if text != PLANNED {
                    let at = info.location().map(ToString::to_string).unwrap_or_default();
                    noted.push(format!("{text} ({at})"));
                }
                true
            });
            if !is_noted {
                usual(info);
            }
        }));
    });
    NOTED.with(|noted| *noted.borrow_mut() = Some(Vec::new()));
}

/// Returns the panics since the last call.
pub(crate) fn take() -> Vec<String> {
    NOTED.with(|noted| {
        noted
            .borrow_mut()
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    })
}

/// Prints panics of this thread again.
pub(crate) fn end() {
    NOTED.with(|noted| *noted.borrow_mut() = None);
}
