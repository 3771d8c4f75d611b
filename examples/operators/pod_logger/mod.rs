//! Logs what happens to pods: created, updated, deleted.
//!
//! A key is queued once, however often its object changes; a handler gets the key and the causes. To log each type of
//! event on its own line, each has its own handler, which is due only for its type of change. All three share one
//! watch, one cache and one queue. No handler is called twice for a pod at the same time, and each is retried
//! separately.

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use lariat::cache::Change;
use lariat::controller::Resync;
use lariat::prelude::*;

#[cfg(test)]
mod tests;

/// How many times a line that could not be logged is retried.
pub const RETRIES: u32 = 5;

/// The types of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The pod existed already, or was created.
    Created,
    /// The pod was updated.
    Updated,
    /// The pod was deleted.
    Deleted,
}

impl Event {
    const ALL: [Self; 3] = [Self::Created, Self::Updated, Self::Deleted];

    /// Returns the name of the event.
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
        pods.register_handler(event.as_str(), options.handler(handler))?;
    }
    Ok(())
}

/// Returns the present phase of the pod, or the last one if it was deleted.
fn phase(cx: &Context<Pod>, event: Event) -> Result<String, HandlerError> {
    let pod = match event {
        Event::Deleted => cx.deleted()?,
        _ => cx.object()?,
    };
    let Some(pod) = pod else {
        // It was deleted, or created again, before this call.
        return Ok("deleted by now".to_owned());
    };
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let phase = phase.unwrap_or("no phase");
    // With a grace period, a pod is being deleted for a while.
    Ok(match event {
        Event::Updated if pod.metadata.deletion_timestamp.is_some() => {
            format!("{phase}, being deleted")
        }
        _ => phase.to_owned(),
    })
}
