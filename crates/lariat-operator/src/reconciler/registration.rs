//! The life of a registered reconciler.

use std::ops::Deref;

use lariat_controller::{Registration, Related};

/// A registered reconciler. Dropping this changes nothing: the reconciler stays registered.
#[derive(Debug)]
pub struct ReconcilerRegistration {
    registration: Registration,
    related: Vec<Related>,
}

impl ReconcilerRegistration {
    pub(super) fn new(registration: Registration, related: Vec<Related>) -> Self {
        Self {
            registration,
            related,
        }
    }

    /// Takes the reconciler away, with what it watches; once this returns it is not running and will never be called
    /// again. See [`Registration::deregister`].
    ///
    /// # Cancel safety
    ///
    /// As for [`Registration::deregister`].
    pub async fn deregister(self) {
        self.related.into_iter().for_each(Related::end);
        self.registration.deregister().await;
    }
}

impl Deref for ReconcilerRegistration {
    type Target = Registration;

    fn deref(&self) -> &Registration {
        &self.registration
    }
}
