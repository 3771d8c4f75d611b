//! What a registered reconciler has in its operator, until it is taken away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lariat_controller::Related;
use lariat_core::Gvk;
use parking_lot::Mutex;

use super::ReconcilerError;
use crate::operator::Shared;
use crate::rbac::Rule;

/// Counts reconcilers.
static RECONCILERS: AtomicU64 = AtomicU64::new(1);

/// What a reconciler watches, the rules it needs, and the condition it alone tells in.
pub(super) struct Claims {
    shared: Arc<Shared>,
    number: u64,
    condition: Option<(Gvk, Arc<str>)>,
    /// The relations; `None` once all is released.
    related: Mutex<Option<Vec<Related>>>,
}

impl Claims {
    /// Begins with the condition in which errors are told, if they are.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        (gvk, name): (&Gvk, &str),
        reported: Option<Arc<str>>,
    ) -> Result<Arc<Self>, ReconcilerError> {
        let condition = reported.map(|kind| (gvk.clone(), kind));
        if let Some(condition) = &condition
            && !shared.reported.lock().insert(condition.clone())
        {
            return Err(ReconcilerError::ConditionTaken {
                gvk: gvk.clone(),
                name: name.to_owned(),
                condition: condition.1.to_string(),
            });
        }
        Ok(Arc::new(Self {
            shared: Arc::clone(shared),
            number: RECONCILERS.fetch_add(1, Ordering::Relaxed),
            condition,
            related: Mutex::new(Some(Vec::new())),
        }))
    }

    /// Keeps relations as long as the reconciler. To be called before it can end.
    pub(super) fn hold(&self, relations: Vec<Related>) {
        if let Some(related) = &mut *self.related.lock() {
            related.extend(relations);
        }
    }

    /// Notes what the reconciler needs to be allowed, unless it has ended already.
    pub(super) fn need(&self, rules: impl IntoIterator<Item = Rule>) {
        // Locked meanwhile, so that an end comes before or after.
        let related = self.related.lock();
        if related.is_some() {
            self.shared.needs.add(self.number, rules);
        }
    }

    /// Lets everything go; once, however often it is called.
    pub(super) fn release(&self) {
        let Some(related) = self.related.lock().take() else {
            return;
        };
        related.into_iter().for_each(Related::end);
        self.shared.needs.remove(self.number);
        if let Some(condition) = &self.condition {
            self.shared.reported.lock().remove(condition);
        }
    }
}
