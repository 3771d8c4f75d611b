//! What a handler says when it succeeded.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::CachedObject;
use lariat_core::{Gvk, ObjectKey, RawObject};
use lariat_queue::Priority;
use serde::Serialize;

use super::error::HandlerError;

/// A handler's success, with what is to happen next.
#[derive(Default)]
#[must_use = "an outcome says something only when the handler returns it"]
pub struct Outcome {
    requeue_after: Option<Duration>,
    priority: Option<Priority>,
    updated: Option<Updated>,
}

/// An object a handler returns, encoded once the kind is known.
pub(crate) struct Updated(Box<Encode>);

type Encode = dyn FnOnce(&Gvk) -> Result<Arc<CachedObject>, HandlerError> + Send + Sync;

impl Outcome {
    /// Nothing is left to do until something happens.
    pub fn done() -> Self {
        Self::default()
    }

    /// The handler wants to be called again, alone, after a delay; zero means at once, behind what is
    /// queued. A change meanwhile calls it earlier, and takes the place of this call. Earlier failures are
    /// forgotten.
    pub fn requeue_after(delay: Duration) -> Self {
        Self {
            requeue_after: Some(delay),
            ..Self::default()
        }
    }

    /// Sets when the handler is called again, unless it said so itself.
    pub fn or_requeue_after(self, delay: Duration) -> Self {
        let requeue_after = self.requeue_after.or(Some(delay));
        Self {
            requeue_after,
            ..self
        }
    }

    /// Sets how urgent the next call is (default: as urgent as this one).
    pub fn at_priority(self, priority: Priority) -> Self {
        let priority = Some(priority);
        Self { priority, ..self }
    }

    /// Passes an object on to the handlers that are called after this one, as the newest state.
    ///
    /// Return what the API server answered to a write, and they need not wait for the watch. It is
    /// passed on within this run only; a newer state that the cache shows is preferred. An
    /// object without a uid, which the API server never saw, is not passed on, as in lasso.
    pub fn with_updated<K>(self, object: impl Into<Arc<K>>) -> Self
    where
        K: Serialize + Send + Sync + 'static,
    {
        let updated = Some(Updated::new(object.into()));
        Self { updated, ..self }
    }

    /// Returns when the handler wants to be called again, if it does.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.requeue_after
    }

    pub(crate) fn priority(&self) -> Option<Priority> {
        self.priority
    }

    pub(crate) fn into_updated(self) -> Option<Updated> {
        self.updated
    }
}

impl Updated {
    pub(super) fn new<K>(object: Arc<K>) -> Self
    where
        K: Serialize + Send + Sync + 'static,
    {
        Self(Box::new(move |gvk| {
            let json = serde_json::to_vec(&*object)?;
            let raw = RawObject::parse(&json, gvk)?;
            Ok(Arc::new(CachedObject::with_value(raw, &object)))
        }))
    }

    /// Makes out the object; `None` if the API server has never seen it.
    pub(crate) fn encode(
        self,
        gvk: &Gvk,
        key: &ObjectKey,
    ) -> Result<Option<Arc<CachedObject>>, HandlerError> {
        let object = (self.0)(gvk)?;
        let returned = object.key();
        if returned != key {
            return Err(HandlerError::terminal(format!(
                "the handler of {key} returned {returned} as its updated object"
            )));
        }
        Ok(Some(object).filter(|object| !object.uid().is_empty()))
    }
}

impl fmt::Debug for Updated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Updated")
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("requeue_after", &self.requeue_after)
            .field("priority", &self.priority)
            .field("updated", &self.updated.is_some())
            .finish()
    }
}
