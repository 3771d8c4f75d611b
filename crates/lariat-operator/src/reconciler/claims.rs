//! What a registered reconciler holds in its operator until it is deregistered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use lariat_controller::Related;
use lariat_core::Gvk;
use parking_lot::Mutex;

use super::error::ReconcilerError;
use super::remembered::{Reconcilers, Remembers};
use super::sets;
use crate::needs::Rule;
use crate::reconcile::{Claim, OperatorState};

/// The number of the next reconciler.
static RECONCILERS: AtomicU64 = AtomicU64::new(1);

/// The relations, rules and exclusive claims of a reconciler.
pub(super) struct Claims {
    operator: Arc<OperatorState>,
    number: u64,
    gvk: Gvk,
    claims: Vec<Claim>,
    /// The relations; none once they are released.
    related: Mutex<Option<Vec<Related>>>,
}

impl Claims {
    /// Takes what no other reconciler of the kind may have.
    pub(super) fn begin(
        operator: &Arc<OperatorState>,
        gvk: &Gvk,
        name: &str,
        claims: Vec<Claim>,
    ) -> Result<Arc<Self>, ReconcilerError> {
        let taken = operator.claimed.take(gvk, &claims);
        taken.map_err(|claim| ReconcilerError::taken(gvk, name, &claim))?;
        sets::begin(operator, gvk);
        Ok(Arc::new(Self {
            operator: Arc::clone(operator),
            number: RECONCILERS.fetch_add(1, Ordering::Relaxed),
            gvk: gvk.clone(),
            claims,
            related: Mutex::new(Some(Vec::new())),
        }))
    }

    /// Keeps relations until the release. Call it before the reconciler can end.
    pub(super) fn hold(&self, relations: Vec<Related>) {
        if let Some(related) = &mut *self.related.lock() {
            related.extend(relations);
        }
    }

    /// Declares what the reconciler needs, unless it has ended already.
    pub(super) fn need(&self, rules: impl IntoIterator<Item = Rule>) {
        // Locked, so that a release happens before or after this, not in between.
        let related = self.related.lock();
        if related.is_some() {
            self.operator.needs.add(self.number, rules);
        }
    }

    /// Includes the reconciler in what the operator remembers, unless it has ended already.
    pub(super) fn count(&self, reconciler: Weak<dyn Remembers>) {
        let related = self.related.lock();
        if related.is_some() {
            let reconcilers = self.operator.feature::<Reconcilers>();
            reconcilers.add(self.number, reconciler);
        }
    }

    /// Releases everything. Further calls do nothing.
    pub(super) fn release(&self) {
        let Some(related) = self.related.lock().take() else {
            return;
        };
        related.into_iter().for_each(Related::end);
        let operator = &self.operator;
        operator.needs.remove(self.number);
        operator.feature::<Reconcilers>().remove(self.number);
        operator.claimed.release(&self.gvk, &self.claims);
        sets::end(operator, &self.gvk);
    }
}
