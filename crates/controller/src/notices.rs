//! Notices on stderr in a program without a `tracing` subscriber, whose log messages are lost.

use std::sync::Once;

use lariat_core::Gvk;

/// Prints a handler's failure on stderr if nothing is logged.
pub(crate) fn failure_without_subscriber(kind: &Gvk, handler: &str, error: &str) {
    without_subscriber(|| format!("handler {handler} of {kind} failed: {error}"));
}

/// Warns on stderr, before handlers run, that failures will not be logged.
pub(crate) fn run_without_subscriber() {
    without_subscriber(|| "handlers are about to run".to_owned());
}

/// Prints a notice on stderr if there is no `tracing` subscriber, once per process.
fn without_subscriber(what: impl FnOnce() -> String) {
    static ONCE: Once = Once::new();
    if !tracing::dispatcher::has_been_set() {
        ONCE.call_once(|| {
            eprintln!(
                "lariat: {}. This program has no tracing subscriber, so failures are not logged; \
                 tracing_subscriber::fmt::init() installs one.",
                what()
            );
        });
    }
}
