//! One run: the handlers that are due for one key, one after the other.

use std::any::Any;
use std::cmp::Ordering;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use lariat_cache::{CachedObject, LoadError};
use lariat_core::{Cause, ObjectKey};
use lariat_queue::{Verdict, Work};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::core::ControllerCore;
use crate::handler::{Decoded, HandlerError, Run};
use crate::lane::{Ended, Lane};
use crate::payload::Payload;

/// Calls the handlers that are due and gives the key back with what became of them.
pub(super) async fn run(
    core: &Arc<ControllerCore>,
    work: Work<ObjectKey, Payload>,
    stopping: &CancellationToken,
) {
    let mut runner = Runner {
        core,
        causes: Arc::new(work.payload().causes.clone()),
        work,
        stopping,
        decoded: Decoded::default(),
        returned: None,
    };
    let mut verdicts = Vec::new();
    for lane in core.lanes().list().iter() {
        if !runner.work.lanes().contains(lane.id()) {
            continue;
        }
        // A handler that is being deregistered is not called any more.
        if let Some(_inside) = lane.enter() {
            verdicts.push((lane.id(), runner.call(lane).await));
        }
    }
    runner.work.finish(verdicts);
}

struct Runner<'a> {
    core: &'a Arc<ControllerCore>,
    work: Work<ObjectKey, Payload>,
    causes: Arc<lariat_core::Causes>,
    stopping: &'a CancellationToken,
    decoded: Decoded,
    /// What a handler of this run returned as the newest state.
    returned: Option<Arc<CachedObject>>,
}

impl Runner<'_> {
    /// Calls one handler.
    async fn call(&mut self, lane: &Lane) -> Verdict<Payload> {
        let failures = self.work.failures(lane.id());
        let object = match self.object_for(lane).await {
            Ok(object) => object,
            Err(error) => {
                let attempt = failures.saturating_add(1);
                lane.count(Ended::Failed, attempt, Duration::ZERO);
                return self.failed(lane, attempt, &error.into());
            }
        };
        let run = Run {
            core: Arc::clone(self.core),
            handler: Arc::clone(lane.name()),
            key: self.work.key().clone(),
            object,
            deleted: self.work.payload().deleted(lane.id()).cloned(),
            decoded: self.decoded.clone(),
            causes: Arc::clone(&self.causes),
            failures,
            stopping: self.stopping.clone(),
        };
        let started = Instant::now();
        let (ended, result) = guarded(lane, run, self.core.handler_timeout()).await;
        lane.count(ended, failures.saturating_add(1), started.elapsed());
        match result {
            Ok(Answer { again, updated }) => {
                self.returned = updated.or(self.returned.take());
                again.map_or(Verdict::Done, |after| Verdict::Again {
                    after,
                    payload: Payload::from(Cause::Requeued {
                        handler: Arc::clone(lane.name()),
                    }),
                })
            }
            Err(error) => self.failed(lane, failures.saturating_add(1), &error),
        }
    }

    /// Returns the newest state that is known: the cache's, or what a handler of this run returned.
    fn newest(&self) -> Option<Arc<CachedObject>> {
        let cached = self.core.informer().store().get(self.work.key());
        let Some(returned) = &self.returned else {
            return cached;
        };
        match cached {
            Some(cached) if is_better(&cached, returned) => Some(cached),
            _ => Some(Arc::clone(returned)),
        }
    }

    /// Returns the newest state as a handler needs it: with its content, even if only metadata is cached.
    async fn object_for(&mut self, lane: &Lane) -> Result<Option<Arc<CachedObject>>, LoadError> {
        let newest = self.newest();
        let lacks_content = |object: &Arc<CachedObject>| !object.has_content();
        if !lane.handler().needs_content() || !newest.as_ref().is_some_and(lacks_content) {
            return Ok(newest);
        }
        let loaded = self.core.informer().load(self.work.key()).await?;
        // The handlers after it need not fetch it again.
        self.returned.clone_from(&loaded);
        Ok(loaded)
    }

    fn failed(&self, lane: &Lane, failures: u32, error: &HandlerError) -> Verdict<Payload> {
        let (kind, key, handler) = (self.core.gvk(), self.work.key(), lane.name());
        if !error.is_retryable() {
            tracing::error!(%kind, %key, %handler, %error, "handler failed for good");
            return Verdict::Done;
        }
        let after = self.work.backoff(lane.id());
        if error.is_conflict() {
            tracing::debug!(%kind, %key, %handler, %error, retry_in = ?after, "handler met a conflict");
        } else {
            tracing::warn!(%kind, %key, %handler, %error, failures, retry_in = ?after, "handler failed");
        }
        let handler = Arc::clone(lane.name());
        let cause = Cause::Retry { handler, failures };
        let payload = self.work.payload().for_retry(lane.id(), cause);
        Verdict::Failed { after, payload }
    }
}

/// Returns whether the cache has something newer than what a handler returned, or was fetched for it.
///
/// Where versions cannot be compared, what was returned is believed: it is the answer to a write of
/// this very run. Of two equal states the one with content is better.
fn is_better(cached: &CachedObject, returned: &CachedObject) -> bool {
    match cached.version().compare(returned.version()) {
        _ if cached.uid() != returned.uid() => true,
        Some(Ordering::Greater) => true,
        Some(Ordering::Equal) => cached.has_content(),
        _ => false,
    }
}

/// What a handler answered, with its object made out.
struct Answer {
    /// When it wants to be called again.
    again: Option<Duration>,
    /// The newest state, for the handlers after it.
    updated: Option<Arc<CachedObject>>,
}

/// Calls a handler and makes out what it returned; an object that cannot be is its failure.
async fn answer(lane: &Lane, run: Run) -> Result<Answer, HandlerError> {
    let (gvk, key) = (run.core.gvk().clone(), run.key.clone());
    let (again, updated) = lane.handler().handle(run).await?.into_parts();
    let updated = updated.map(|updated| updated(&gvk)).transpose()?;
    if let Some(returned) = updated.as_ref().map(|object| object.key())
        && *returned != key
    {
        return Err(HandlerError::terminal(format!(
            "the handler of {key} returned {returned} as its updated object"
        )));
    }
    Ok(Answer { again, updated })
}

/// Calls a handler so that neither a panic nor endless waiting reaches the worker.
async fn guarded(
    lane: &Lane,
    run: Run,
    timeout: Option<Duration>,
) -> (Ended, Result<Answer, HandlerError>) {
    let call = AssertUnwindSafe(answer(lane, run)).catch_unwind();
    let caught = match timeout {
        None => call.await,
        Some(limit) => match time::timeout(limit, call).await {
            Ok(caught) => caught,
            Err(_) => {
                let error = format!("took longer than {limit:?} and was dropped");
                return (Ended::TimedOut, Err(error.into()));
            }
        },
    };
    match caught {
        Ok(Ok(answer)) => (Ended::Well, Ok(answer)),
        Ok(Err(error)) => (Ended::Failed, Err(error)),
        Err(panic) => (
            Ended::Panicked,
            Err(format!("panicked: {}", message(&*panic)).into()),
        ),
    }
}

/// Returns what a panic said.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}
