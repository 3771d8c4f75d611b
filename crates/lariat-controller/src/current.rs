//! Which handler the present task is in.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::future::Future;
use std::panic;
use std::sync::{Arc, Once};
use std::time::Duration;

use lariat_core::Gvk;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::handler::Gated;

tokio::task_local! {
    static CURRENT: Caller;
}

thread_local! {
    /// Where the call panicked that is being caught on this thread.
    static BACKTRACE: Cell<Option<Backtrace>> = const { Cell::new(None) };
}

/// The call of a handler that a task is in.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) gvk: Gvk,
    handler: Arc<str>,
    /// How many runs in a row, each caused by the write of the one before, led to this one.
    pub(crate) chain: u32,
    /// The call, if the handler's writes are asked about.
    gated: Option<Gated>,
}

/// How long after a backtrace the next may be taken: resolving one takes milliseconds.
const BACKTRACE_PAUSE: Duration = Duration::from_secs(1);

impl Caller {
    pub(crate) fn new(gvk: Gvk, handler: Arc<str>, chain: u32) -> Self {
        Self {
            gvk,
            handler,
            chain,
            gated: None,
        }
    }

    /// Has somebody asked before the call writes.
    pub(crate) fn gated(self, gated: Option<Gated>) -> Self {
        Self { gated, ..self }
    }

    /// Returns the name under which the handler is told to others.
    pub(crate) fn name(&self, told_to: &Gvk) -> Arc<str> {
        match self.gvk == *told_to {
            true => Arc::clone(&self.handler),
            false => format!("{} {}", self.gvk.kind(), self.handler).into(),
        }
    }
}

/// Returns where the call panicked that was caught on this thread just now, if that was looked at.
pub(crate) fn take_backtrace() -> Option<Backtrace> {
    BACKTRACE.take()
}

/// Runs a call, so that what it does is known to be its doing.
pub(crate) async fn within<T>(caller: Caller, call: impl Future<Output = T>) -> T {
    CURRENT.scope(caller, call).await
}

/// Returns the call the present task is in.
pub(crate) fn caller() -> Option<Caller> {
    CURRENT.try_with(Caller::clone).ok()
}

/// Returns the call the present task is in, and its handler's kind, if its writes are asked about.
pub(crate) fn gated() -> Option<(Gvk, Gated)> {
    let gated = |caller: &Caller| Some((caller.gvk.clone(), caller.gated.clone()?));
    CURRENT.try_with(gated).ok().flatten()
}

/// Makes panics of handlers leave their backtrace; other panics, and what is done about any, stay as they
/// were.
pub(crate) fn keep_backtraces() {
    static ONCE: Once = Once::new();
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            before(info);
            if CURRENT.try_with(|_| ()).is_err() {
                return;
            }
            let mut last = LAST.lock();
            let now = Instant::now();
            // Runtimes with virtual time have clocks of their own: what seems to come is long ago.
            let is_recent = |at: Instant| {
                let ago = now.checked_duration_since(at);
                ago.is_some_and(|ago| ago < BACKTRACE_PAUSE)
            };
            if !last.is_some_and(is_recent) {
                *last = Some(now);
                BACKTRACE.set(Some(Backtrace::force_capture()));
            }
        }));
    });
}
