//! The life of a registered reconciler.

use std::fmt;
use std::ops::Deref;

use lariat_controller::{Registration, Related};

use super::claims::Claims;

/// A registered reconciler. Dropping this changes nothing: the reconciler stays registered.
pub struct ReconcilerRegistration {
    registration: Registration,
    related: Vec<Related>,
    claims: Claims,
}

impl ReconcilerRegistration {
    pub(super) fn new(registration: Registration, related: Vec<Related>, claims: Claims) -> Self {
        Self {
            registration,
            related,
            claims,
        }
    }

    /// Takes the reconciler away, with what it watches and what it [needs](crate::Operator::rules); once this returns it is not running and will never be called
    /// again. See [`Registration::deregister`].
    ///
    /// # Cancel safety
    ///
    /// As for [`Registration::deregister`].
    pub async fn deregister(self) {
        self.related.into_iter().for_each(Related::end);
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
            .field("related", &self.related.len())
            .finish_non_exhaustive()
    }
}
