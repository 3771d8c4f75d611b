//! Reconcilers that write the status of their objects.

use lariat_cache::View;

use super::builder::Reconciler;
use crate::needs::Rule;
use crate::status::Report;

impl<K: View> Reconciler<K> {
    /// Reports errors in a condition of the object, such as `Ready`.
    ///
    /// After a failure the condition is `False` with reason `ReconcileError`, and its message is the error's text on
    /// one line, cut at 32768 characters. Everyone who can read the object can read it. After a success it is `True`
    /// with reason `Reconciled`, unless the call set this condition itself. A failed cleanup is reported too.
    ///
    /// The condition shows how the last call ended. A value that the call [sets
    /// itself](crate::Reconcile::set_condition) is written after the call has succeeded, and until then a reported
    /// failure stays, even in a status that is written whole. A condition that changed back and forth within each
    /// attempt would make every attempt a change that leads to the next one immediately.
    ///
    /// It is written only if it changes. If only the message changes, it is written at most once a minute: a text with
    /// a time or a number would otherwise make every attempt a change that leads to the next one. Not reported are
    /// ignored errors, conflicts before the third attempt in a row, panics, timeouts, and objects that do not decode.
    /// If the condition cannot be written, this does not change the outcome. It is logged for the first, second, fourth
    /// and so on failure with each error, until writes succeed for a minute.
    ///
    /// Only one reconciler of a kind in an operator can report in a condition of the same type. Statuses that others
    /// write whole keep it.
    ///
    /// The kind needs a status subresource with `status.conditions`, a list of
    /// [`Condition`](k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition).
    pub fn report_errors(mut self, condition: &str) -> Self {
        self.setup.report = Some(Report::new(condition));
        self.writes_status()
    }

    /// Declares that the reconciler writes the status of its objects.
    ///
    /// This is for [`Operator::rules`](crate::Operator::rules). [`report_errors`](Self::report_errors) includes it.
    pub fn writes_status(self) -> Self {
        // They are read if they changed meanwhile.
        let get = Rule::of(&self.kind).verbs(["get"]);
        let status = Rule::status(&self.kind);
        self.needs(get).needs(status)
    }
}
