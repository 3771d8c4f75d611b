//! What a reconcile does with the status of its object.

use lariat_cache::View;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::condition::ConditionUpdate;
use super::decisions::Decisions;
use super::error::StatusError;
use super::writer::StatusWriter;
use crate::reconcile::Reconcile;

impl<K: View> Reconcile<K> {
    /// Makes the object's status what is given; see [`StatusWriter::set`]. Returns whether anything was written.
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
    /// If the future is dropped, the status may have been written or not.
    pub async fn set_status<S: Serialize + Sync>(&self, status: &S) -> Result<bool, StatusError> {
        self.status().set(status).await
    }

    /// Changes the object's status by a function; see [`StatusWriter::update`]. Returns whether anything was written.
    ///
    /// # Errors
    ///
    /// As for [`StatusWriter::update`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the status may have been written or not.
    pub async fn update_status<S>(
        &self,
        change: impl FnMut(&mut S) + Send,
    ) -> Result<bool, StatusError>
    where
        S: Serialize + DeserializeOwned + Default + Send,
    {
        self.status().update(change).await
    }

    /// Sets one condition in `status.conditions`, by the rules of [`Conditions::set`](crate::Conditions::set), and leaves the others as they
    /// are. Returns whether anything was written.
    ///
    /// Without an [observed generation](ConditionUpdate::observed) it is the one of the object this reconcile is about. A
    /// condition that was observed at a newer one stays as it is: whoever wrote it, such as another replica, has seen a
    /// spec this call does not know, and this reconciler is called for that as well.
    ///
    /// The condition in which this reconciler [reports errors](crate::Reconciler::report_errors) is written when the
    /// call ends, in the last form that was set, and only if the call does not fail; what is returned is whether it
    /// differs from what is there. If it cannot be written then, the call fails. Progress within a call belongs in a
    /// condition of another type.
    ///
    /// # Errors
    ///
    /// The condition is not a valid one, or as for [`StatusWriter::set`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the status may have been written or not.
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

    /// Begins to write the status in another way than [`set_status`](Self::set_status) does.
    pub fn status(&self) -> StatusWriter<K> {
        StatusWriter::new(self)
    }
}
