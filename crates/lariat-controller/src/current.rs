//! The handler call that the current task runs, and the gates on its writes.

use std::future::Future;
use std::sync::Arc;

use lariat_cache::{CachedObject, GateDecision, OwnWrite, PendingWrite, WriteGate};
use lariat_core::{CausingRun, Gvk, ObjectKey, Subject};
use lariat_lease::Leadership;

use crate::gate::Gated;
use crate::hot_loop::{ChainRun, Write, since_progress};
use crate::written;

tokio::task_local! {
    static CURRENT: Caller;
}

/// The handler call that a task runs.
#[derive(Clone)]
pub(crate) struct Caller {
    gvk: Gvk,
    key: ObjectKey,
    handler: Arc<str>,
    run: u64,
    /// The length of the chain that led to the run, since its last progress.
    pub(crate) chain: u32,
    /// The run as a step of that chain, if it is part of one.
    pub(crate) step: Option<Arc<ChainRun>>,
    /// The call, if gates check the handler's writes.
    gated: Option<Gated>,
    /// The leadership that the call needs, if any.
    leadership: Option<Leadership>,
}

impl Caller {
    /// Describes the call of a handler in the run with this number.
    pub(crate) fn new(gvk: Gvk, key: ObjectKey, handler: Arc<str>, run: u64) -> Self {
        Self {
            gvk,
            key,
            handler,
            run,
            chain: 0,
            step: None,
            gated: None,
            leadership: None,
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

    /// Sets the chain that led to the run, and the run as a step of it.
    pub(crate) fn in_chain(self, chain: u32, step: Option<Arc<ChainRun>>) -> Self {
        Self {
            chain,
            step,
            ..self
        }
    }

    /// Sets the gates to ask before the call writes.
    pub(crate) fn gated(self, gated: Option<Gated>) -> Self {
        Self { gated, ..self }
    }

    /// Allows writes of the call only while this process leads.
    pub(crate) fn led_by(self, leadership: Option<Leadership>) -> Self {
        Self { leadership, ..self }
    }

    /// Returns the chain length of a run caused by what the call writes or enqueues.
    pub(crate) fn leads_to(&self) -> u32 {
        since_progress(self.chain.saturating_add(1), self.step.as_ref())
    }

    /// Records a write of the call. Without a state before, it is a creation.
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

    /// Returns a write of the call, attributed to the handler.
    pub(crate) fn write<'a>(&'a self, name: &'a Arc<str>, written: &'a OwnWrite) -> Write<'a> {
        Write {
            before: written.before.as_ref(),
            after: &written.after,
            version: &written.version,
            by: name,
            chain: self.leads_to(),
            step: self.step.as_ref(),
        }
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

/// Returns the handler's kind and its gates, if the current task runs a gated call.
pub(crate) fn gated() -> Option<(Gvk, Gated)> {
    let gated = |caller: &Caller| Some((caller.gvk().clone(), caller.gated.clone()?));
    CURRENT.try_with(gated).ok().flatten()
}

/// Returns the leadership that the call on this task needs, if any.
pub(crate) fn leadership() -> Option<Leadership> {
    let leadership = |caller: &Caller| caller.leadership.clone();
    CURRENT.try_with(leadership).ok().flatten()
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

/// The write gate of all clients of a factory.
///
/// It asks the gates of the handler that runs on this task. A process that no longer leads may not write, whatever the
/// gates decide.
pub(crate) struct ByHandler;

impl WriteGate for ByHandler {
    fn admit(&self, write: &PendingWrite<'_>) -> GateDecision {
        written::note(write);
        // The fence comes first: a handler that was suspended beyond the renew deadline must not write, since another
        // process may lead by now. Asked for each write, because the lease may be lost in the middle of a call.
        let fenced = leadership().and_then(|it| it.admit(write).err());
        if let Some(fenced) = fenced {
            return GateDecision::Refuse(Box::new(fenced));
        }
        match gated() {
            Some((gvk, gated)) => gated.admit(&gvk, write),
            None => GateDecision::Pass,
        }
    }
}
