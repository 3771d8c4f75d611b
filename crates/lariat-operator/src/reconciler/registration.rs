//! The handle of a registered reconciler.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use lariat_controller::Registration;

use super::claims::Claims;

/// A registered reconciler. Dropping this handle leaves it registered.
pub struct ReconcilerRegistration {
    registration: Registration,
    claims: Arc<Claims>,
}

impl ReconcilerRegistration {
    pub(super) fn new(registration: Registration, claims: Arc<Claims>) -> Self {
        Self {
            registration,
            claims,
        }
    }

    /// Deregisters the reconciler, and waits for its running calls.
    ///
    /// Its relations and declared [permissions](crate::Operator::rules) are removed too. Once this returns it is not
    /// running and is never called again; see [`Registration::deregister`]. The cancellation of its token
    /// ([`HandlerOptions::until`](lariat_controller::HandlerOptions::until)) has the same effect.
    ///
    /// # Cancel safety
    ///
    /// As for [`Registration::deregister`].
    pub async fn deregister(self) {
        self.claims.release();
        self.registration.deregister().await;
    }
}

impl Deref for ReconcilerRegistration {
    type Target = Registration;

    fn deref(&self) -> &Registration {
        &self.registration
    }
}

impl fmt::Debug for ReconcilerRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconcilerRegistration")
            .field("registration", &self.registration)
            .finish_non_exhaustive()
    }
}
