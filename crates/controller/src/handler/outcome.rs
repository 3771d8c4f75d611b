//! The outcome of a successful call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::CachedObject;
use lariat_core::{Gvk, ObjectKey, RawObject};
use lariat_queue::Priority;
use serde::Serialize;

use super::error::HandlerError;

/// The result of a successful call, and when to call the handler again.
///
/// ```
/// use std::time::Duration;
///
/// use lariat::Outcome;
///
/// let outcome = Outcome::done();
/// assert_eq!(outcome.delay(), None);
///
/// let outcome = Outcome::requeue_after(Duration::from_secs(60));
/// assert_eq!(outcome.delay(), Some(Duration::from_secs(60)));
/// ```
#[derive(Default)]
#[must_use = "an outcome says something only when the handler returns it"]
pub struct Outcome {
    requeue_after: Option<Duration>,
    priority: Option<Priority>,
    updated: Option<Updated>,
    note: Option<Arc<str>>,
}

/// An object that a handler returned; it is encoded once its kind is known.
pub(crate) struct Updated(Box<Encode>);

type Encode = dyn FnOnce(&Gvk) -> Result<Arc<CachedObject>, HandlerError> + Send + Sync;

impl Outcome {
    /// Succeeds.
    ///
    /// The handler is called again when the object changes, its key is enqueued, or a time comes for which a call was
    /// scheduled earlier: by [`requeue_after`](Self::requeue_after), `enqueue_after`, or a failure.
    pub fn done() -> Self {
        Self::default()
    }

    /// Calls this handler again after a delay; zero means immediately.
    ///
    /// With zero, the key is queued behind the others. As with client-go's `AddAfter`, calls for other reasons in the
    /// meantime, such as a change, do not replace this call. While a call of this handler for the key waits for its
    /// time, a retry or a requeue, no second one is scheduled: the earlier time counts for both. If further deletions
    /// under this name wait for the handler, their calls come first, and each decides anew about the requeue. As with
    /// any success, the count of failures in a row starts again. A delay that overflows the clock means never.
    pub fn requeue_after(delay: Duration) -> Self {
        Self {
            requeue_after: Some(delay),
            ..Self::default()
        }
    }

    /// Sets a requeue delay, unless the outcome has one already.
    pub fn or_requeue_after(self, delay: Duration) -> Self {
        let requeue_after = self.requeue_after.or(Some(delay));
        Self {
            requeue_after,
            ..self
        }
    }

    /// Calls the handler again after this delay at the latest.
    ///
    /// A shorter requeue delay of the outcome is kept.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::Outcome;
    ///
    /// let (short, long) = (Duration::from_secs(5), Duration::from_secs(60));
    /// assert_eq!(Outcome::requeue_after(short).requeue_within(long).delay(), Some(short));
    /// assert_eq!(Outcome::done().requeue_within(long).delay(), Some(long));
    /// ```
    pub fn requeue_within(self, longest: Duration) -> Self {
        let requeue_after = self.requeue_after.map_or(longest, |own| own.min(longest));
        Self {
            requeue_after: Some(requeue_after),
            ..self
        }
    }

    /// Sets the priority of the next call (default: that of this call).
    pub fn at_priority(self, priority: Priority) -> Self {
        let priority = Some(priority);
        Self { priority, ..self }
    }

    /// Adds a note for the [history](crate::SharedController::history).
    ///
    /// It tells people why the object is in its present state. A second call replaces the note.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use lariat::Outcome;
    ///
    /// let outcome = Outcome::requeue_after(Duration::from_secs(5)).with_note("waits for the volume");
    /// assert_eq!(outcome.note(), Some("waits for the volume"));
    /// ```
    pub fn with_note(self, note: impl Into<Arc<str>>) -> Self {
        let note = Some(note.into());
        Self { note, ..self }
    }

    /// Adds a note, unless the outcome has one already.
    pub fn or_note(self, note: impl Into<Arc<str>>) -> Self {
        let note = self.note.or_else(|| Some(note.into()));
        Self { note, ..self }
    }

    /// Returns the note, if any.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    pub(crate) fn take_note(&mut self) -> Option<Arc<str>> {
        self.note.take()
    }

    /// Passes an updated object on to the handlers after this one, as the newest state.
    ///
    /// Use it with the API server's response to a write. (A write through the factory's clients is in the cache as
    /// well.) The object is passed on within this run only, and a newer state in the cache is preferred. As in lasso,
    /// an object without a uid is not passed on: the API server has never seen it. An object of another key is a
    /// terminal error.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use lariat::{Context, HandlerResult, Outcome};
    ///
    /// async fn touch(cx: Context<ConfigMap>) -> HandlerResult {
    ///     let namespace = cx.key().namespace().unwrap_or_default();
    ///     let api: kube::Api<ConfigMap> = kube::Api::namespaced(cx.client(), namespace);
    ///     let patch = serde_json::json!({"metadata": {"annotations": {"seen": "true"}}});
    ///     let params = kube::api::PatchParams::default();
    ///     let updated = api.patch(cx.key().name(), &params, &kube::api::Patch::Merge(patch)).await?;
    ///     Ok(Outcome::done().with_updated(updated))
    /// }
    /// # let _ = touch;
    /// ```
    pub fn with_updated<K>(self, object: impl Into<Arc<K>>) -> Self
    where
        K: Serialize + Send + Sync + 'static,
    {
        let updated = Some(Updated::new(object.into()));
        Self { updated, ..self }
    }

    /// Returns the requeue delay, if any.
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

    /// Encodes the object; none if it has no uid, so the API server has never seen it.
    pub(crate) fn encode(
        self,
        gvk: &Gvk,
        key: &ObjectKey,
    ) -> Result<Option<Arc<CachedObject>>, HandlerError> {
        let object = (self.0)(gvk)?;
        let returned = object.key();
        // The handlers after this one would be called with an object of another key.
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
            .field("note", &self.note)
            .finish()
    }
}
