//! Status and conditions: what a reconciler says about its object, written when it changes.

mod applied;
mod condition;
mod diff;
mod error;
mod listed;
mod report;
mod unwritten;
mod writer;

use lariat_cache::View;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::reconciler::{Reconcile, Reconciler};
pub(crate) use applied::Applied;
pub use condition::{ConditionError, ConditionUpdate, Conditions};
pub use error::StatusError;
pub(crate) use report::Report;
pub use writer::StatusWriter;

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

    /// Sets one condition in `status.conditions`, by the rules of [`Conditions::set`], and leaves the others as they
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
        let is_reported = self.own().lock().reported.as_deref() == Some(update.kind());
        if is_reported {
            return self.status().hold(update);
        }
        let written = self.status().condition(update, |_| true).await?;
        self.own()
            .lock()
            .conditions
            .insert(update.kind().to_owned());
        Ok(written)
    }

    /// Begins to write the status in another way than [`set_status`](Self::set_status) does.
    pub fn status(&self) -> StatusWriter<K> {
        StatusWriter::new(self)
    }
}

impl<K: View> Reconciler<K> {
    /// Tells of failures, and of success, in a condition of the object: `Ready`, say.
    ///
    /// After a failure it is `False` for the reason `ReconcileError`, and its message is the error's text on one
    /// line, at most 32768 characters of it. Mind what errors say: whoever reads the object reads them. After a
    /// success it is `True` for the reason `Reconciled`, unless the call set this condition itself. A failed cleanup
    /// is told too.
    ///
    /// The condition says how the last call ended. What a call itself [sets in it](Reconcile::set_condition) is written
    /// when the call has ended well, and a failure that is reported stays until then, in a status that is written
    /// whole too: a condition that went to and fro within each attempt would make every attempt a change that brings
    /// the next at once.
    ///
    /// It is written only when it changes. Where nothing but the message does, it is written once a minute at most: a
    /// text with a time or a number in it would otherwise make every attempt a change that brings the next one. Errors
    /// that are ignored are not told, nor is a conflict before the third attempt in a row, nor a call that panics or is
    /// dropped by its timeout, nor that an object does not decode. That the condition cannot be written is logged, of
    /// each error the first time, the second, the fourth and so on until it can be written for a minute, and changes
    /// nothing about the outcome.
    ///
    /// Of all reconcilers of a kind in one operator only one can report in a condition of some type. Statuses that the
    /// others write whole keep it.
    ///
    /// The kind has a status subresource and `status.conditions` as a list of
    /// [`Condition`](k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition).
    pub fn report_errors(mut self, condition: &str) -> Self {
        self.setup.report = Some(Report::new(condition));
        self.writes_status()
    }
}
