//! The handler call that the current task runs.
//!
//! It attributes writes and enqueues to their call. The authority to write is not here: the [clients](crate::clients)
//! of a call have it, wherever they are used.

use std::future::Future;
use std::sync::Arc;

use lariat_cache::CachedObject;
use lariat_core::{CausingRun, Gvk, ObjectKey, Subject};
use lariat_lease::Term;

use crate::gate::{Gate, GatedCall};
use crate::hot_loop::Lead;

tokio::task_local! {
    static CURRENT: Caller;
}

/// A handler call, with the authority of its writes.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) gvk: Gvk,
    pub(crate) key: ObjectKey,
    pub(crate) handler: Arc<str>,
    pub(crate) run: u64,
    /// The gates of the handler.
    pub(crate) gates: Arc<[Arc<dyn Gate>]>,
    /// The object that the handler was called for, for its gates; for a deleted one the last state.
    pub(crate) object: Option<Arc<CachedObject>>,
    /// The term in which the call may write; `None` without an election.
    pub(crate) term: Option<Term>,
}

impl Caller {
    /// Returns the call as gates see it.
    pub(crate) fn gated(&self) -> GatedCall<'_> {
        GatedCall {
            gvk: &self.gvk,
            handler: &self.handler,
            key: &self.key,
            object: self.object.as_ref(),
        }
    }

    /// Returns the key the handler was called for.
    pub(crate) fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Returns the name of the handler, as its lane has it.
    pub(crate) fn handler(&self) -> &Arc<str> {
        &self.handler
    }

    /// Returns the kind of the handler.
    pub(crate) fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    /// Returns the run as the cause of what it writes and enqueues.
    ///
    /// It is made for each write and each enqueue, so that a call without them allocates nothing.
    pub(crate) fn causing_run(&self) -> Arc<CausingRun> {
        let object = Subject {
            gvk: self.gvk.clone(),
            key: self.key.clone(),
        };
        Arc::new(CausingRun {
            object,
            run: self.run,
        })
    }

    /// Returns the run as the hot loop detector of a kind names it.
    pub(crate) fn lead(&self, reader: &Gvk) -> Lead {
        let (during, by) = (self.causing_run(), self.name(reader));
        Lead { during, by }
    }

    /// Returns the name of the handler, as causes of a kind's runs show it.
    ///
    /// Handlers of other kinds are shown with their kind.
    pub(crate) fn name(&self, reader: &Gvk) -> Arc<str> {
        if *self.gvk() == *reader {
            Arc::clone(&self.handler)
        } else {
            format!("{} {}", self.gvk().kind(), self.handler).into()
        }
    }
}

/// Runs a call with `caller` as the task's current call.
pub(crate) async fn within<T>(caller: Caller, call: impl Future<Output = T>) -> T {
    CURRENT.scope(caller, call).await
}

/// Returns the call that the current task runs, if any.
pub(crate) fn caller() -> Option<Caller> {
    CURRENT.try_with(Caller::clone).ok()
}

/// Calls a function with the call that the current task runs, if any.
pub(crate) fn with<T>(act: impl FnOnce(Option<&Caller>) -> T) -> T {
    let mut act = Some(act);
    let called = CURRENT.try_with(|caller| act.take().map(|act| act(Some(caller))));
    called.ok().flatten().unwrap_or_else(|| {
        let act = act.take().expect("it was not called outside of a call");
        act(None)
    })
}

/// Runs a function with `caller` as the current call, unless the task runs a call.
pub(crate) fn attribute(caller: &Caller, act: &mut dyn FnMut()) {
    if is_in_call() {
        act();
    } else {
        CURRENT.sync_scope(caller.clone(), act);
    }
}

/// Returns whether the current task runs a handler.
pub(crate) fn is_in_call() -> bool {
    CURRENT.try_with(|_| ()).is_ok()
}

/// Returns whether the current task runs a handler for this object.
pub(crate) fn is_about(gvk: &Gvk, key: &ObjectKey) -> bool {
    let is_it = |caller: &Caller| *caller.gvk() == *gvk && *caller.key() == *key;
    CURRENT.try_with(is_it).unwrap_or(false)
}
