//! Predicates: which changes a handler is called for.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use lariat_cache::{CachedObject, Change};
use lariat_core::LabelSelector;
use serde::Deserialize;

/// Says for which changes of the cache a handler is called.
///
/// It is asked once for every change, with the old and the new state, before anything is queued: what it
/// refuses costs no call. It is not asked for what code enqueues, for keys that
/// [related](crate::Relation) objects bring, for retries, and for a resync of the handler's own. A change that came while an earlier one was waiting is judged by itself, so none is lost
/// because the last one was refused.
///
/// The ready-made ones are those of controller-runtime; like there, they let creations and deletions
/// through and judge updates. A resync is an update in which nothing changed.
///
/// ```
/// use lariat_controller::Predicate;
///
/// let spec_or_labels = Predicate::generation_changed().or(Predicate::labels_changed());
/// let web = Predicate::labels("app=web".parse()?).and(spec_or_labels);
/// # let _ = web;
/// # Ok::<(), lariat_core::SelectorError>(())
/// ```
#[derive(Clone)]
#[must_use = "a predicate does nothing until a handler has it"]
pub struct Predicate(Arc<dyn Fn(&Change) -> bool + Send + Sync>);

impl Predicate {
    /// Makes a predicate of a function.
    ///
    /// The function is called by the reflector, under locks, so it must be quick, and must not use controllers or
    /// caches. One that panics counts as a yes.
    pub fn new(wants: impl Fn(&Change) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(wants))
    }

    /// Judges updates by the old and the new state.
    pub fn on_updates(
        wants: impl Fn(&CachedObject, &CachedObject) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |change| match change {
            Change::Updated { old, new } => wants(old, new),
            Change::Resynced { object } => wants(object, object),
            _ => true,
        })
    }

    /// Wants updates that change `metadata.generation`, which counts changes of the spec. Kinds that have no
    /// generation are wanted with every change of their version.
    pub fn generation_changed() -> Self {
        Self::on_updates(|old, new| match (old.generation(), new.generation()) {
            (None, None) => old.version() != new.version(),
            (before, after) => before != after,
        })
    }

    /// Wants updates that change labels.
    pub fn labels_changed() -> Self {
        Self::on_updates(|old, new| old.labels() != new.labels())
    }

    /// Wants updates that change annotations. They are read from the JSON of both states.
    pub fn annotations_changed() -> Self {
        Self::on_updates(|old, new| {
            old.version() != new.version() && annotations(old) != annotations(new)
        })
    }

    /// Wants updates that change the resource version, which all do but resyncs.
    pub fn version_changed() -> Self {
        Self::on_updates(|old, new| old.version() != new.version())
    }

    /// Wants objects that a selector matches, and those it matched before an update, so that a handler sees
    /// them leave.
    pub fn labels(selector: LabelSelector) -> Self {
        Self::new(move |change| match change {
            Change::Updated { old, new } => {
                selector.matches(new.labels()) || selector.matches(old.labels())
            }
            Change::Added { object, .. } | Change::Resynced { object } => {
                selector.matches(object.labels())
            }
            Change::Deleted { last } => selector.matches(last.labels()),
            _ => true,
        })
    }

    /// Wants what both want.
    pub fn and(self, other: Self) -> Self {
        Self::new(move |change| (self.0)(change) && (other.0)(change))
    }

    /// Wants what either wants.
    pub fn or(self, other: Self) -> Self {
        Self::new(move |change| (self.0)(change) || (other.0)(change))
    }

    /// Wants what one of those that are there wants.
    pub(crate) fn either(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.or(other)),
            (one, other) => one.or(other),
        }
    }

    /// Wants what this one does not, creations and deletions included.
    #[allow(
        clippy::should_implement_trait,
        reason = "a word among words: and, or, not"
    )]
    pub fn not(self) -> Self {
        Self::new(move |change| !(self.0)(change))
    }

    /// Returns whether a change is wanted.
    #[must_use]
    pub fn wants(&self, change: &Change) -> bool {
        // A panic here would lose the change for every handler.
        let wants = catch_unwind(AssertUnwindSafe(|| (self.0)(change)));
        wants.unwrap_or_else(|_| {
            tracing::error!(key = %change.key(), "a predicate panicked, which counts as a yes");
            true
        })
    }
}

/// Reads the annotations of an object; none if they cannot be read.
fn annotations(object: &CachedObject) -> BTreeMap<String, String> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default)]
        annotations: Option<BTreeMap<String, String>>,
    }
    let json = object.json().unwrap_or_default();
    let read = serde_json::from_slice::<Object>(&json);
    read.ok()
        .and_then(|object| object.metadata.annotations)
        .unwrap_or_default()
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}
