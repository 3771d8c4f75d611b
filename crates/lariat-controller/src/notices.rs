//! What is said once, because a program that does it rarely means to.

use std::sync::Once;

use lariat_core::Gvk;

/// Says on stderr that a handler fails and nothing of it is logged.
pub(crate) fn failure_without_subscriber(kind: &Gvk, handler: &str, error: &str) {
    without_subscriber(|| format!("handler {handler} of {kind} failed: {error}"));
}

/// Says on stderr that nothing that goes wrong is going to be logged.
pub(crate) fn run_without_subscriber() {
    without_subscriber(|| "handlers are about to run".to_owned());
}

/// Says something on stderr, once in a process, if nothing collects what is logged.
fn without_subscriber(what: impl FnOnce() -> String) {
    static ONCE: Once = Once::new();
    if !tracing::dispatcher::has_been_set() {
        ONCE.call_once(|| {
            eprintln!(
                "lariat: {}. This program has no tracing subscriber, so what goes wrong is not logged; \
                 tracing_subscriber::fmt::init() installs one.",
                what()
            );
        });
    }
}
