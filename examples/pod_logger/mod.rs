//! Logs what happens to pods: created, updated, deleted.
//!
//! A key is queued once, however much happens to it; what a handler is told is that, and why. So that kinds of
//! events do not melt into one line, each has a handler of its own, which is due only for its kind of change. All three
//! are on one watch, one cache and one queue. None is called twice for a pod at the same time, and each is tried
//! again alone.

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use lariat::prelude::*;
use lariat::{Change, Resync};

#[cfg(test)]
mod tests;

/// How many times a line that could not be logged is tried again.
pub const RETRIES: u32 = 5;

/// What happens to pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It came into sight.
    Created,
    /// It has another state.
    Updated,
    /// It is gone.
    Deleted,
}

impl Event {
    const ALL: [Self; 3] = [Self::Created, Self::Updated, Self::Deleted];

    /// Returns the word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        }
    }

    fn is(self, change: &Change) -> bool {
        match change {
            Change::Added { .. } => self == Self::Created,
            Change::Updated { .. } => self == Self::Updated,
            Change::Deleted { .. } => self == Self::Deleted,
            _ => false,
        }
    }
}

/// Returns the options of the kind: pods are logged one after the other.
pub fn options() -> ControllerOptions {
    ControllerOptions::default().workers(1)
}

/// Registers the handlers of all kinds of events; `log` is called for each, with the phase of the pod.
///
/// # Errors
///
/// Pods have such handlers already.
pub fn register<L>(factory: &SharedControllerFactory, log: L) -> Result<()>
where
    L: Fn(Event, &ObjectKey, &str) + Clone + Send + Sync + 'static,
{
    let pods = factory.for_object::<Pod>();
    for event in Event::ALL {
        let options = HandlerOptions::default()
            .only(Predicate::new(move |change| event.is(change)))
            .resync(Resync::Never)
            .max_retries(RETRIES);
        let log = log.clone();
        let handler = move |cx: Context<Pod>| {
            let log = log.clone();
            async move {
                log(event, cx.key(), &phase(&cx, event)?);
                Ok(Outcome::done())
            }
        };
        pods.register_handler_with(event.as_str(), options, handler)?;
    }
    Ok(())
}

/// Returns the phase of the pod as it is now, or, when it was deleted, as it was last.
fn phase(cx: &Context<Pod>, event: Event) -> Result<String, HandlerError> {
    let pod = match event {
        Event::Deleted => cx.deleted()?,
        _ => cx.object()?,
    };
    let Some(pod) = pod else {
        // It was deleted, or created again, before its turn came.
        return Ok("gone by now".to_owned());
    };
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let phase = phase.unwrap_or("no phase");
    // With a period of grace, a pod is told to go before it is gone.
    Ok(match event {
        Event::Updated if pod.metadata.deletion_timestamp.is_some() => {
            format!("{phase}, being deleted")
        }
        _ => phase.to_owned(),
    })
}
