//! Which handler the present task is in, and who is asked before it writes.

use std::future::Future;
use std::sync::Arc;

use lariat_cache::{Admission, CachedObject, PendingWrite, WriteGate, Written};
use lariat_core::{Gvk, ObjectKey};
use lariat_lease::Leadership;

use crate::gate::Gated;
use crate::sentinel::{ChainRun, Write, since_progress};

tokio::task_local! {
    static CURRENT: Caller;
}

/// The call of a handler that a task is in.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) gvk: Gvk,
    key: ObjectKey,
    handler: Arc<str>,
    /// How many runs in a row, each caused by the write of the one before, led to this one, counted from the last that
    /// made progress.
    pub(crate) chain: u32,
    /// The run, if it is one of such a chain.
    pub(crate) step: Option<Arc<ChainRun>>,
    /// The call, if the handler's writes are asked about.
    gated: Option<Gated>,
    /// The election whose leader alone may make the call.
    leadership: Option<Leadership>,
}

impl Caller {
    pub(crate) fn new(gvk: Gvk, key: ObjectKey, handler: Arc<str>) -> Self {
        Self {
            gvk,
            key,
            handler,
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

    /// Says which chain led to the run, and which run of it this is.
    pub(crate) fn in_chain(self, chain: u32, step: Option<Arc<ChainRun>>) -> Self {
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

    /// Lets the call write only while this process leads.
    pub(crate) fn led_by(self, leadership: Option<Leadership>) -> Self {
        Self { leadership, ..self }
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

    /// Returns a write of the call, under the handler's name.
    pub(crate) fn write<'a>(&'a self, name: &'a Arc<str>, written: &'a Written) -> Write<'a> {
        Write {
            before: written.before.as_ref(),
            after: &written.after,
            version: &written.version,
            by: name,
            chain: self.leads_to(),
            step: self.step.as_ref(),
        }
    }

    /// Returns the name of the handler for a reader of a kind.
    pub(crate) fn name(&self, reader: &Gvk) -> Arc<str> {
        if self.gvk == *reader {
            Arc::clone(&self.handler)
        } else {
            format!("{} {}", self.gvk.kind(), self.handler).into()
        }
    }
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

/// Returns the election whose leader alone may make the present call.
///
/// The present call is the one that runs on this task.
pub(crate) fn leadership() -> Option<Leadership> {
    let leadership = |caller: &Caller| caller.leadership.clone();
    CURRENT.try_with(leadership).ok().flatten()
}

/// Returns whether the present task is in the call of a handler.
pub(crate) fn is_in_call() -> bool {
    CURRENT.try_with(|_| ()).is_ok()
}

/// Returns whether the present task is in the call of a handler for this object.
pub(crate) fn is_about(gvk: &Gvk, key: &ObjectKey) -> bool {
    let is_it = |caller: &Caller| caller.gvk == *gvk && caller.key == *key;
    CURRENT.try_with(is_it).unwrap_or(false)
}

/// Asks the gates of the present handler, if its process may write at all.
///
/// The present handler is the one that runs on this task.
pub(crate) struct ByHandler;

impl WriteGate for ByHandler {
    fn admit(&self, write: &PendingWrite<'_>) -> Admission {
        let fenced = leadership().and_then(|it| it.admit(write).err());
        if let Some(fenced) = fenced {
            return Admission::Refuse(Box::new(fenced));
        }
        match gated() {
            Some((gvk, gated)) => gated.admit(&gvk, write),
            None => Admission::Pass,
        }
    }
}
