//! A reconciler that writes the status of its objects.

use lariat_cache::View;

use super::builder::Reconciler;
use crate::needs::Rule;
use crate::status::Report;

impl<K: View> Reconciler<K> {
    /// Reports failures, and success, in a condition of the object: `Ready`, say.
    ///
    /// After a failure it is `False` for the reason `ReconcileError`, and its message is the error's text on one
    /// line, at most 32768 characters of it. Mind what errors say: whoever reads the object reads them. After a
    /// success it is `True` for the reason `Reconciled`, unless the call set this condition itself. A failed cleanup
    /// is reported too.
    ///
    /// The condition says how the last call ended. What a call itself [sets in it](crate::Reconcile::set_condition) is written
    /// when the call has ended well, and a failure that is reported stays until then, in a status that is written
    /// whole too: a condition that went to and fro within each attempt would make every attempt a change that brings
    /// the next at once.
    ///
    /// It is written only when it changes. Where nothing but the message does, it is written once a minute at most: a
    /// text with a time or a number in it would otherwise make every attempt a change that brings the next one. Errors
    /// that are ignored are not reported, nor is a conflict before the third attempt in a row, nor a call that panics or is
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

    /// Says that the reconciler writes the status of its objects, for [`Operator::rules`](crate::Operator::rules).
    /// [`report_errors`](Self::report_errors) says so too.
    pub fn writes_status(self) -> Self {
        // They are read when they changed meanwhile.
        let get = Rule::of(&self.kind).verbs(["get"]);
        let status = Rule::status(&self.kind);
        self.needs(get).needs(status)
    }
}
