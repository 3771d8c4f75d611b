//! The methods of [`Reconcile`] that write the status of its object.

use lariat_cache::View;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::condition::ConditionUpdate;
use super::decisions::Decisions;
use super::error::StatusError;
use super::writer::StatusWriter;
use crate::reconcile::Reconcile;

impl<K: View> Reconcile<K> {
    /// Sets the status of the object; returns whether a request was sent.
    ///
    /// Fields that are not given are removed. See [`StatusWriter::set`].
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
    /// use lariat::{HandlerResult, Outcome, Reconcile};
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

    /// Changes the status by a function; returns whether a request was sent.
    ///
    /// The function gets the newest status, and only its changes are written. See [`StatusWriter::update`].
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
    /// use lariat::{HandlerResult, Outcome, Reconcile};
    ///
    /// async fn reconcile(cx: Reconcile<Deployment>) -> HandlerResult {
    ///     cx.update_status(|status: &mut DeploymentStatus| status.collision_count = Some(0)).await?;
    ///     Ok(Outcome::done())
    /// }
    /// # let _ = reconcile;
    /// ```
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
    /// It follows the rules of [`Conditions::set`](crate::Conditions::set), and leaves other conditions alone. The
    /// default of the [observed generation](ConditionUpdate::observed) is that of the call's object. A condition that
    /// was observed at a newer generation is left alone: its writer, perhaps another replica, has seen a spec that this
    /// call has not, and this reconciler is called for that spec too.
    ///
    /// The condition in which this reconciler [reports errors](crate::Reconciler::report_errors) is different. It is
    /// written at the end of the call, with the last value set, and only if the call succeeds; if that write fails, the
    /// call fails. The returned value tells whether it differs from the present one. To show progress during a call,
    /// use a condition of another type.
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use lariat::operator::ConditionUpdate;
    /// use lariat::{HandlerResult, Outcome, Reconcile};
    ///
    /// async fn reconcile(cx: Reconcile<Deployment>) -> HandlerResult {
    ///     cx.set_condition(&ConditionUpdate::is_false("Ready", "Waiting").message("2 of 3 pods")).await?;
    ///     Ok(Outcome::done())
    /// }
    /// # let _ = reconcile;
    /// ```
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
            return self.status().keep_until_end(update);
        }
        let written = self.status().condition(update, |_| true).await?;
        Decisions::of(self).lock().decide(update.kind());
        Ok(written)
    }

    /// Returns a writer of the status, for server-side apply and other options.
    pub fn status(&self) -> StatusWriter<K> {
        StatusWriter::new(self)
    }
}
