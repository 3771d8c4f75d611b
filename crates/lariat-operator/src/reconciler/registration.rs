//! The life of a registered reconciler.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use lariat_controller::Registration;

use super::claims::Claims;

/// A registered reconciler. Dropping this changes nothing: the reconciler stays registered.
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

    /// Takes the reconciler away, with what it watches and what it [needs](crate::Operator::rules); once this returns it
    /// is not running and will never be called again. See [`Registration::deregister`]. The end of a token
    /// ([`HandlerOptions::until`](lariat_controller::HandlerOptions::until)) takes away as much.
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
