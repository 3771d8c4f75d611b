//! What a handler says when it succeeded.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::CachedObject;
use lariat_core::{Gvk, RawObject};
use serde::Serialize;

use super::error::HandlerError;

/// A handler's success, with what is to happen next.
#[derive(Default)]
#[must_use = "an outcome says something only when the handler returns it"]
pub struct Outcome {
    requeue_after: Option<Duration>,
    updated: Option<Updated>,
}

/// An object a handler returns, encoded once the kind is known.
type Updated = Box<dyn FnOnce(&Gvk) -> Result<Arc<CachedObject>, HandlerError> + Send>;

impl Outcome {
    /// Nothing is left to do until something happens.
    pub fn done() -> Self {
        Self::default()
    }

    /// The handler wants to be called again, alone, after a delay; zero means at once, behind what is
    /// queued. A change meanwhile calls it earlier, and takes the place of this call.
    pub fn requeue_after(delay: Duration) -> Self {
        Self {
            requeue_after: Some(delay),
            updated: None,
        }
    }

    /// Passes an object on to the handlers that are called after this one, as the newest state.
    ///
    /// Return what the API server answered to a write, and they need not wait for the watch. It is
    /// passed on within this run only; a state the cache shows that is at least as new is preferred.
    pub fn with_updated<K>(self, object: impl Into<Arc<K>>) -> Self
    where
        K: Serialize + Send + Sync + 'static,
    {
        let object: Arc<K> = object.into();
        Self {
            updated: Some(Box::new(move |gvk| encode(&object, gvk))),
            ..self
        }
    }

    pub(crate) fn into_parts(self) -> (Option<Duration>, Option<Updated>) {
        (self.requeue_after, self.updated)
    }
}

fn encode<K>(object: &Arc<K>, gvk: &Gvk) -> Result<Arc<CachedObject>, HandlerError>
where
    K: Serialize + Send + Sync + 'static,
{
    let json = serde_json::to_vec(&**object)?;
    let raw = RawObject::parse(&json, gvk)?;
    Ok(Arc::new(CachedObject::with_value(raw, object)))
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("requeue_after", &self.requeue_after)
            .field("updated", &self.updated.is_some())
            .finish()
    }
}
