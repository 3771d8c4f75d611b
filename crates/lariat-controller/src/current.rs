//! Which handler the present task is in.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::future::Future;
use std::panic;
use std::sync::{Arc, Once};
use std::time::Duration;

use lariat_cache::CachedObject;
use lariat_core::Gvk;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::handler::Gated;
use crate::sentinel::{Step, since_progress};

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
    /// How many runs in a row, each caused by the write of the one before, led to this one, counted from the last that
    /// made progress.
    pub(crate) chain: u32,
    /// The run, if it is one of such a chain.
    pub(crate) step: Option<Arc<Step>>,
    /// The call, if the handler's writes are asked about.
    gated: Option<Gated>,
}

/// How long after a backtrace the next may be taken: resolving one takes milliseconds.
const BACKTRACE_PAUSE: Duration = Duration::from_secs(1);

impl Caller {
    pub(crate) fn new(gvk: Gvk, handler: Arc<str>) -> Self {
        Self {
            gvk,
            handler,
            chain: 0,
            step: None,
            gated: None,
        }
    }

    /// Says which chain led to the run, and which run of it this is.
    pub(crate) fn in_chain(self, chain: u32, step: Option<Arc<Step>>) -> Self {
        Self {
            chain,
            step,
            ..self
        }
    }

    /// Has somebody asked before the call writes.
    pub(crate) fn gated(self, gated: Option<Gated>) -> Self {
        Self { gated, ..self }
    }

    /// Returns the chain of a run that is caused by what the call writes or enqueues.
    pub(crate) fn leads_to(&self) -> u32 {
        since_progress(self.chain.saturating_add(1), self.step.as_ref())
    }

    /// Notes that the call wrote an object of a kind, or created it if there is no state before.
    pub(crate) fn wrote(
        &self,
        gvk: &Gvk,
        before: Option<&Arc<CachedObject>>,
        after: &Arc<CachedObject>,
    ) {
        if let Some(step) = &self.step {
            step.wrote(gvk, before, after);
        }
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
