//! Objects that an annotation excludes from reconciling.

use std::sync::Arc;

use lariat_cache::{CachedObject, Change};
use lariat_controller::Predicate;

use crate::names::is_qualified;

/// The annotation that pauses an object.
#[derive(Clone)]
pub(super) struct Pause(Arc<str>);

impl Pause {
    pub(super) fn new(annotation: &str) -> Self {
        Self(annotation.into())
    }

    /// Returns the annotation as the error if it is not a valid key.
    pub(super) fn check(&self) -> Result<(), String> {
        if is_qualified(&self.0) {
            return Ok(());
        }
        Err(self.0.to_string())
    }

    /// Returns why an object is not reconciled, or `None` if it is.
    pub(super) fn reason(&self, object: &CachedObject) -> Option<String> {
        let is_paused = self.pauses(object);
        is_paused.then(|| format!("paused by the annotation {}", self.0))
    }

    /// Returns the predicate of the changes that begin or end a pause.
    ///
    /// Without it, predicates of the reconciler such as `generation_changed` would ignore the removal of the
    /// annotation.
    pub(super) fn needed(&self) -> Predicate {
        let pause = self.clone();
        Predicate::new(move |change| match change {
            Change::Updated { old, new } => pause.pauses(old) != pause.pauses(new),
            _ => false,
        })
    }

    fn pauses(&self, object: &CachedObject) -> bool {
        let annotations = object.annotations();
        annotations.get(&*self.0).is_some_and(|it| it != "false")
    }
}
