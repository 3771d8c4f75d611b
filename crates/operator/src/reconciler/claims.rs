//! The claims, rules and relations of a registered reconciler, until it is deregistered.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use lariat_controller::Related;
use lariat_core::Gvk;
use parking_lot::Mutex;

use super::error::ReconcilerError;
use super::sets;
use super::table_sizes::{Reconcilers, Remembers};
use crate::needs::Rule;
use crate::reconcile::{Claim, OperatorState};

/// The number of the next reconciler; 0 is the operator.
static RECONCILERS: AtomicU64 = AtomicU64::new(1);

/// The relations, rules and exclusive claims of a reconciler.
///
/// It ends in two ways, by `deregister` or by the cancellation of its token, and both release everything once.
pub(super) struct Claims {
    operator: Arc<OperatorState>,
    number: u64,
    gvk: Gvk,
    /// Set by the release, for calls that go on.
    ended: Arc<AtomicBool>,
    claims: Vec<Claim>,
    /// The relations; `None` once everything is released.
    related: Mutex<Option<Vec<Related>>>,
}

impl Claims {
    /// Takes the things that no other reconciler of the kind may have.
    pub(super) fn begin(
        operator: &Arc<OperatorState>,
        gvk: &Gvk,
        name: &str,
        claims: Vec<Claim>,
        ended: Arc<AtomicBool>,
    ) -> Result<Arc<Self>, ReconcilerError> {
        let taken = operator.claimed.take(gvk, &claims);
        taken.map_err(|claim| ReconcilerError::taken(gvk, name, &claim))?;
        sets::begin(operator, gvk);
        Ok(Arc::new(Self {
            operator: Arc::clone(operator),
            number: RECONCILERS.fetch_add(1, Ordering::Relaxed),
            gvk: gvk.clone(),
            ended,
            claims,
            related: Mutex::new(Some(Vec::new())),
        }))
    }

    /// Keeps relations until the release; called before the reconciler can end.
    pub(super) fn hold(&self, relations: Vec<Related>) {
        if let Some(related) = &mut *self.related.lock() {
            related.extend(relations);
        }
    }

    /// Declares the rules of the reconciler, unless it has ended already.
    pub(super) fn need(&self, rules: impl IntoIterator<Item = Rule>) {
        // Under the lock, so that a concurrent release comes before or after it. In between, the rules would be added
        // after their removal, and stay for ever.
        let related = self.related.lock();
        if related.is_some() {
            self.operator.needs.add(self.number, rules);
        }
    }

    /// Includes the reconciler in the operator's sizes, unless it has ended already.
    pub(super) fn count(&self, reconciler: Weak<dyn Remembers>) {
        let related = self.related.lock();
        if related.is_some() {
            let reconcilers = self.operator.feature::<Reconcilers>();
            reconcilers.add(self.number, reconciler);
        }
    }

    /// Releases everything; further calls do nothing.
    pub(super) fn release(&self) {
        // Taking the relations marks the release, so that the two ways to end it cannot both run.
        let Some(related) = self.related.lock().take() else {
            return;
        };
        related.into_iter().for_each(Related::end);
        let operator = &self.operator;
        operator.needs.remove(self.number);
        operator.feature::<Reconcilers>().remove(self.number);
        operator.claimed.release(&self.gvk, &self.claims);
        self.ended.store(true, Ordering::Relaxed);
        sets::end(operator, &self.gvk);
    }
}
