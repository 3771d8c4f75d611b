//! What a registered reconciler has in its operator, until it is taken away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lariat_core::Gvk;

use super::ReconcilerError;
use crate::operator::Shared;
use crate::rbac::Rule;

/// Counts reconcilers.
static RECONCILERS: AtomicU64 = AtomicU64::new(1);

/// The rules a reconciler needs, and the condition it alone tells in.
pub(super) struct Claims {
    shared: Arc<Shared>,
    number: u64,
    condition: Option<(Gvk, Arc<str>)>,
}

impl Claims {
    /// Begins with the condition in which errors are told, if they are.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        (gvk, name): (&Gvk, &str),
        reported: Option<Arc<str>>,
    ) -> Result<Self, ReconcilerError> {
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
        Ok(Self {
            shared: Arc::clone(shared),
            number: RECONCILERS.fetch_add(1, Ordering::Relaxed),
            condition,
        })
    }

    /// Notes what the reconciler needs to be allowed.
    pub(super) fn need(&self, rules: impl IntoIterator<Item = Rule>) {
        self.shared.needs.add(self.number, rules);
    }

    pub(super) fn release(self) {
        self.shared.needs.remove(self.number);
        if let Some(condition) = &self.condition {
            self.shared.reported.lock().remove(condition);
        }
    }
}
