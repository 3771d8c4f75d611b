//! What a registered reconciler has in its operator, until it is taken away.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use lariat_controller::Related;
use lariat_core::Gvk;
use parking_lot::Mutex;

use super::ReconcilerError;
use super::claimed::Claim;
use crate::operator::Shared;
use crate::rbac::Rule;
use crate::remembered::Remembers;

/// Counts reconcilers.
static RECONCILERS: AtomicU64 = AtomicU64::new(1);

/// What a reconciler watches, the rules it needs, and what it alone has.
pub(super) struct Claims {
    shared: Arc<Shared>,
    number: u64,
    gvk: Gvk,
    claims: Vec<Claim>,
    /// The relations; `None` once all is released.
    related: Mutex<Option<Vec<Related>>>,
}

impl Claims {
    /// Begins with what no other reconciler of the kind may have.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        (gvk, name): (&Gvk, &str),
        claims: Vec<Claim>,
    ) -> Result<Arc<Self>, ReconcilerError> {
        let taken = shared.claimed.take(gvk, &claims);
        taken.map_err(|claim| ReconcilerError::taken(gvk, name, &claim))?;
        shared.sets.begin(gvk);
        Ok(Arc::new(Self {
            shared: Arc::clone(shared),
            number: RECONCILERS.fetch_add(1, Ordering::Relaxed),
            gvk: gvk.clone(),
            claims,
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

    /// Has what the reconciler remembers counted, unless it has ended already.
    pub(super) fn count(&self, reconciler: Weak<dyn Remembers>) {
        let related = self.related.lock();
        if related.is_some() {
            self.shared.reconcilers.add(self.number, reconciler);
        }
    }

    /// Lets everything go; once, however often it is called.
    pub(super) fn release(&self) {
        let Some(related) = self.related.lock().take() else {
            return;
        };
        related.into_iter().for_each(Related::end);
        self.shared.needs.remove(self.number);
        self.shared.reconcilers.remove(self.number);
        self.shared.claimed.release(&self.gvk, &self.claims);
        self.shared.sets.end(&self.gvk);
    }
}
