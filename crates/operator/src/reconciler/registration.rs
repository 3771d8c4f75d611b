//! The handle of a registered reconciler.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use lariat_controller::Registration;

use super::claims::Claims;

/// The handle of a registered reconciler; dropping it has no effect.
///
/// It dereferences to the handler's [`Registration`].
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
    /// Its relations and declared [permissions](crate::Operator::rules) are removed too. When this returns, the
    /// reconciler is not running and is never called again; see [`Registration::deregister`]. Cancelling its token
    /// ([`HandlerOptions::until`](lariat_controller::HandlerOptions::until)) has the same effect without the wait.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use lariat::{Operator, Outcome};
    /// # async fn example(operator: Operator) -> Result<(), Box<dyn std::error::Error>> {
    /// let registration = operator
    ///     .reconciler("configs", &operator.factory().for_object::<ConfigMap>())
    ///     .register(|_| async { Ok(Outcome::done()) })?;
    /// registration.deregister().await;
    /// # Ok(()) }
    /// ```
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
