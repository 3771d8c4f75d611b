//! Predicates, which filter the changes a handler is called for.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use lariat_cache::{CachedObject, Change};
use lariat_core::LabelSelector;

/// Selects the changes of the cache for which a handler is called.
///
/// It is evaluated once for every change, with the old and the new state, before the key is queued. A change that it
/// rejects costs no call. Each change is evaluated by itself, also while the key is queued for an earlier one, so
/// rejecting a later change does not lose an earlier one.
///
/// It does not apply to enqueued keys, to keys of [related](crate::Relation) objects, to retries, to the handler's own
/// resyncs, and to states that are not later than the one before, as after a restore of the API server
/// ([`Change::is_rewound`]). With [sharding](crate::FactoryBuilder::sharding), a key that comes from another replica calls
/// the handler if the predicate selects the addition of its object, or an update in which nothing has changed: a
/// predicate that compares two states does not see the updates of the time before.
///
/// The ready-made predicates are those of controller-runtime. As there, they select creations and deletions, and filter
/// updates. A resync counts as an update in which nothing has changed.
///
/// ```
/// use lariat::Predicate;
///
/// let spec_or_labels = Predicate::generation_changed().or(Predicate::labels_changed());
/// let web = Predicate::labels("app=web".parse()?).and(spec_or_labels);
/// # let _ = web;
/// # Ok::<(), lariat::core::SelectorError>(())
/// ```
#[derive(Clone)]
#[must_use = "a predicate does nothing until a handler has it"]
pub struct Predicate(Arc<dyn Fn(&Change) -> bool + Send + Sync>);

impl Predicate {
    /// Creates a predicate from a function.
    ///
    /// The function is called where the change is published, under locks. It must be fast, and must not use controllers
    /// or caches. If it panics, the change is selected. It should read metadata: the content of a state may not be
    /// cached, for example [on demand](lariat_cache::Storage::OnDemand) or beyond a memory budget, and decoding fails
    /// then ([`is_no_content`](lariat_cache::DecodeError::is_no_content)).
    ///
    /// ```
    /// use lariat::cache::Change;
    /// use lariat::Predicate;
    ///
    /// let deletions = Predicate::new(|change| matches!(change, Change::Deleted { .. }));
    /// # let _ = deletions;
    /// ```
    pub fn new(wants: impl Fn(&Change) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(wants))
    }

    /// Filters updates by the old and the new state.
    ///
    /// Creations and deletions are selected. For a resync, both states are the same.
    ///
    /// ```
    /// use lariat::Predicate;
    ///
    /// let moved = Predicate::on_updates(|old, new| old.labels().get("zone") != new.labels().get("zone"));
    /// # let _ = moved;
    /// ```
    pub fn on_updates(
        wants: impl Fn(&CachedObject, &CachedObject) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |change| match change {
            Change::Updated { old, new } => wants(old, new),
            Change::Resynced { object } => wants(object, object),
            _ => true,
        })
    }

    /// Selects updates that change the generation, which counts changes of the spec.
    ///
    /// For objects without a generation, it selects every change of the resource version.
    pub fn generation_changed() -> Self {
        Self::on_updates(|old, new| match (old.generation(), new.generation()) {
            (None, None) => old.version() != new.version(),
            (before, after) => before != after,
        })
    }

    /// Selects updates that change labels.
    pub fn labels_changed() -> Self {
        Self::on_updates(|old, new| old.labels() != new.labels())
    }

    /// Selects updates that change annotations.
    ///
    /// It parses the JSON of both states, which costs more than the other predicates.
    pub fn annotations_changed() -> Self {
        Self::on_updates(|old, new| {
            old.version() != new.version() && old.annotations() != new.annotations()
        })
    }

    /// Selects updates that change the resource version, which excludes only resyncs.
    pub fn version_changed() -> Self {
        Self::on_updates(|old, new| old.version() != new.version())
    }

    /// Selects changes of objects that match a label selector.
    ///
    /// An update is selected if the old or the new state matches, so a handler is also called when an object stops
    /// matching.
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

    /// Selects changes that both predicates select.
    pub fn and(self, other: Self) -> Self {
        Self::new(move |change| (self.0)(change) && (other.0)(change))
    }

    /// Selects changes that at least one of both predicates selects.
    pub fn or(self, other: Self) -> Self {
        Self::new(move |change| (self.0)(change) || (other.0)(change))
    }

    /// Combines optional predicates with [`or`](Self::or).
    pub(crate) fn either(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.or(other)),
            (one, other) => one.or(other),
        }
    }

    /// Combines a predicate that may have been set before with another one by [`and`](Self::and).
    pub(crate) fn both(before: Option<Self>, other: Self) -> Self {
        match before {
            Some(before) => before.and(other),
            None => other,
        }
    }

    /// Selects changes that this predicate does not select.
    ///
    /// The ready-made predicates select creations and deletions, so their opposites reject them.
    #[allow(
        clippy::should_implement_trait,
        reason = "a word among words: and, or, not"
    )]
    pub fn not(self) -> Self {
        Self::new(move |change| !(self.0)(change))
    }

    /// Returns whether the predicate selects a change.
    #[must_use]
    pub fn wants(&self, change: &Change) -> bool {
        // An uncaught panic would lose the change for every handler.
        let wants = catch_unwind(AssertUnwindSafe(|| (self.0)(change)));
        wants.unwrap_or_else(|_| {
            tracing::error!(key = %change.key(), "predicate panicked; the change is not filtered");
            true
        })
    }
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}
