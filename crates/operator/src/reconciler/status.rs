//! The methods of [`Reconciler`] about the status of its objects.

use lariat_cache::View;

use super::builder::Reconciler;
use super::warning;
use crate::needs::Rule;
use crate::status::Report;

impl<K: View> Reconciler<K> {
    /// Reports errors in a condition of the object, such as `Ready`.
    ///
    /// | last call | status | reason | message |
    /// |---|---|---|---|
    /// | failed, or the object does not decode | `False` | `ReconcileError` | the error on one line, at most 32,768 characters |
    /// | succeeded | `True` | `Reconciled` | empty |
    /// | skipped by [`paused_by`](Self::paused_by) | `Unknown` | `Paused` | the annotation |
    ///
    /// A failed cleanup is reported too. Everybody who can read the object can read the message. Not reported are
    /// ignored errors, conflicts before the third attempt in a row, panics, and timeouts. An object that does not decode
    /// also gets a Warning Event (feature `events`) when that is first reported.
    ///
    /// **With values of the call's own.** A value that the call [sets](crate::Reconcile::set_condition) in this
    /// condition replaces `Reconciled`. It is written after the call has succeeded. Until then a reported failure
    /// stays, even in a status that is written as a whole. If each attempt removed the failure and reported it again,
    /// each attempt would be a change that calls the reconciler immediately, without backoff.
    ///
    /// **Writes.** The condition is written only if it changes. The write does not call the reconciler again, unless the
    /// object has changed otherwise too, or the watch reports the write before it is answered; it calls other handlers. If only the message changes, it is written at most once
    /// a minute: a text with a time or a number would otherwise cause a hot loop. If the condition cannot be written,
    /// the outcome of the call does not change. This is logged for the first, second, fourth and so on failure with
    /// each error, until writes succeed for a minute.
    ///
    /// Only one reconciler of a kind in an operator can report in a condition of one type. Statuses that others write
    /// as a whole keep the condition.
    ///
    /// The kind needs a status subresource with `status.conditions`, a list of
    /// [`Condition`](k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition).
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// # use lariat::{HandlerResult, Operator, Outcome, Reconcile};
    ///
    /// # async fn reconcile(_: Reconcile<Deployment>) -> HandlerResult { Ok(Outcome::done()) }
    /// # fn example(operator: Operator) -> Result<(), Box<dyn std::error::Error>> {
    /// operator
    ///     .reconciler("deployments", &operator.factory().for_object::<Deployment>())
    ///     .report_errors("Synced")
    ///     .register(reconcile)?;
    /// # Ok(()) }
    /// ```
    pub fn report_errors(mut self, condition: &str) -> Self {
        self.setup.report = Some(Report::new(condition));
        let needs = warning::rules().into_iter();
        needs.fold(self.writes_status(), Self::needs)
    }

    /// Declares that the reconciler writes the status of its objects.
    ///
    /// It adds `get` of the kind and `patch` of its status to [`Operator::rules`](crate::Operator::rules).
    /// [`report_errors`](Self::report_errors) includes it, and [`Rule::events`].
    pub fn writes_status(self) -> Self {
        // The object is read if it changes between the call and the write.
        let get = Rule::of(&self.kind).verbs(["get"]);
        let status = Rule::status(&self.kind);
        self.needs(get).needs(status)
    }
}
