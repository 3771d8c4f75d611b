//! Methods of a reconcile call for the status of its object.

use lariat_cache::View;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::condition::ConditionUpdate;
use super::decisions::Decisions;
use super::error::StatusError;
use super::writer::StatusWriter;
use crate::reconcile::Reconcile;

impl<K: View> Reconcile<K> {
    /// Sets the object's status; returns whether a request was sent.
    ///
    /// See [`StatusWriter::set`].
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
    /// use lariat_controller::{HandlerResult, Outcome};
    /// use lariat_operator::Reconcile;
    ///
    /// async fn reconcile(cx: Reconcile<Deployment>) -> HandlerResult {
    ///     let status = DeploymentStatus { ready_replicas: Some(3), ..DeploymentStatus::default() };
    ///     cx.set_status(&status).await?;
    ///     Ok(Outcome::done())
    /// }
    /// # let _ = reconcile;
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`StatusWriter::set`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the status may have been written.
    pub async fn set_status<S: Serialize + Sync>(&self, status: &S) -> Result<bool, StatusError> {
        self.status().set(status).await
    }

    /// Changes the object's status by a function; returns whether a request was sent.
    ///
    /// See [`StatusWriter::update`].
    ///
    /// # Errors
    ///
    /// As for [`StatusWriter::update`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the status may have been written.
    pub async fn update_status<S>(
        &self,
        change: impl FnMut(&mut S) + Send,
    ) -> Result<bool, StatusError>
    where
        S: Serialize + DeserializeOwned + Default + Send,
    {
        self.status().update(change).await
    }

    /// Sets a condition in `status.conditions`; returns whether a request was sent.
    ///
    /// It follows the rules of [`Conditions::set`](crate::Conditions::set); other conditions stay.
    ///
    /// The default [observed generation](ConditionUpdate::observed) is that of this call's object. A condition that was
    /// observed at a newer generation stays: its writer, for example another replica, has seen a spec that this call
    /// has not, and this reconciler is called for that spec as well.
    ///
    /// The condition in which this reconciler [reports errors](crate::Reconciler::report_errors) is written when the
    /// call ends, with the last value set, and only if the call succeeds. The returned value then is whether it differs
    /// from the present one. If the write fails, the call fails. To show progress during a call, use a condition of
    /// another type.
    ///
    /// # Errors
    ///
    /// The condition is invalid, or as for [`StatusWriter::set`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the status may have been written.
    pub async fn set_condition(&self, update: &ConditionUpdate) -> Result<bool, StatusError> {
        update.check()?;
        let is_reported = self.call().reported().map(|kind| &**kind) == Some(update.kind());
        if is_reported {
            return self.status().hold(update);
        }
        let written = self.status().condition(update, |_| true).await?;
        Decisions::of(self).lock().decide(update.kind());
        Ok(written)
    }

    /// Returns a writer of the status, with options that [`set_status`](Self::set_status) does not have.
    pub fn status(&self) -> StatusWriter<K> {
        StatusWriter::new(self)
    }
}
