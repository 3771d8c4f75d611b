//! Reports the result of calls in a condition.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::View;
use lariat_controller::{HandlerError, HandlerResult};
use lariat_core::Uid;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::condition::{ConditionError, ConditionUpdate, LONGEST_MESSAGE, check_type};
use super::decisions::Decisions;
use super::error::StatusError;
use super::unwritten::Unwritten;
use crate::reconcile::Reconcile;

/// The reasons of the condition: after a failure, after a success, and while paused.
const FAILED: &str = "ReconcileError";
const RECONCILED: &str = "Reconciled";
const PAUSED: &str = "Paused";

/// The minimum interval between reports that differ in the message only.
///
/// Each write is a change that calls other handlers and clients.
const MESSAGE_PERIOD: Duration = Duration::from_secs(60);

/// The number of timestamps at which outdated ones are removed.
const CLEAR_AT: usize = 1024;

/// The first attempt whose conflict is reported; by then most are resolved.
const REPORTED_CONFLICT: u32 = 3;

/// Reports the result of calls in a condition.
pub(crate) struct Report {
    kind: Arc<str>,
    /// The time at which a failure of each object was last reported.
    reported: Mutex<HashMap<Uid, Instant>>,
    unwritten: Unwritten,
}

impl Report {
    pub(crate) fn new(kind: &str) -> Self {
        Self {
            kind: kind.into(),
            reported: Mutex::default(),
            unwritten: Unwritten::default(),
        }
    }

    /// Returns the type of the condition.
    pub(crate) fn kind(&self) -> Arc<str> {
        Arc::clone(&self.kind)
    }

    pub(crate) fn check(&self) -> Result<(), ConditionError> {
        check_type(&self.kind)
    }

    /// Reports the result of a call, and returns the result.
    ///
    /// A failure to write the report does not change the result. But a value that the call has set in this condition is
    /// part of the call: if it cannot be written, the call fails.
    pub(crate) async fn report<K: View>(
        &self,
        cx: &Reconcile<K>,
        result: HandlerResult,
    ) -> HandlerResult {
        let pending = Decisions::of(cx).lock().pending.take();
        match (result, pending) {
            (Err(error), _) if !error.is_ignored() => {
                self.note(cx, self.report_failure(cx, &error).await);
                Err(error)
            }
            // After an ignored error too: the call has decided what the condition should be.
            (result, Some(pending)) => match cx.status().unnoticed().settle(&pending).await {
                Err(error) if !error.is_not_found() => Err(error.into()),
                _ => result,
            },
            (Ok(outcome), None) => {
                self.note(cx, self.report_success(cx).await);
                Ok(outcome)
            }
            (result, None) => result,
        }
    }

    /// Reports that an object does not decode; returns whether that was not reported before.
    pub(crate) async fn report_unreadable<K: View>(
        &self,
        cx: &Reconcile<K>,
        error: &HandlerError,
    ) -> bool {
        let written = self.report_failure(cx, error).await;
        let is_new = !matches!(written, Ok(false));
        self.note(cx, written);
        is_new
    }

    /// Reports that an object is paused.
    pub(crate) async fn report_pause<K: View>(&self, cx: &Reconcile<K>, why: &str) {
        let update = ConditionUpdate::is_unknown(&self.kind, PAUSED).message(why);
        self.note(
            cx,
            cx.status().unnoticed().condition(&update, |_| true).await,
        );
    }

    /// Logs a report that could not be written.
    fn note<K: View>(&self, cx: &Reconcile<K>, written: Result<bool, StatusError>) {
        match written {
            Ok(true) => self.unwritten.written(cx.gvk(), &self.kind),
            Ok(false) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                self.unwritten
                    .failed(cx.gvk(), cx.key(), &self.kind, &error);
            }
        }
    }

    async fn report_failure<K: View>(
        &self,
        cx: &Reconcile<K>,
        error: &HandlerError,
    ) -> Result<bool, StatusError> {
        // A conflict is normal if the cache is behind, and the retry usually succeeds.
        if error.is_conflict() && cx.attempt() < REPORTED_CONFLICT {
            return Ok(false);
        }
        let update = ConditionUpdate::is_false(&self.kind, FAILED).message(one_line(error));
        let uid = cx.raw().uid();
        let reported = self.reported.lock().get(uid).copied();
        let is_fresh = reported.is_some_and(|at| at.elapsed() < MESSAGE_PERIOD);
        let generation = cx.raw().generation();
        // A new message can wait. A new failure, or a failure for a new generation, cannot.
        let worth = |was: Option<&Value>| {
            let is_known = was.is_some_and(|was| {
                let seen = was["observedGeneration"].as_i64();
                is_failure(was) && (seen.is_none() || seen == generation)
            });
            !(is_known && is_fresh)
        };
        let written = cx.status().unnoticed().condition(&update, worth).await?;
        if written {
            self.remember(uid);
        }
        Ok(written)
    }

    async fn report_success<K: View>(&self, cx: &Reconcile<K>) -> Result<bool, StatusError> {
        if Decisions::of(cx).lock().has(&self.kind) {
            return Ok(false);
        }
        let update = ConditionUpdate::is_true(&self.kind, RECONCILED);
        // A deleted object gets no new report, but one that no longer holds is withdrawn.
        let is_worth = |was: Option<&Value>| {
            !cx.raw().is_deleting() || was.is_some_and(|was| is_failure(was) || is_pause(was))
        };
        let status = cx.status().unnoticed();
        status.condition(&update, is_worth).await
    }

    fn remember(&self, uid: &Uid) {
        let mut reported = self.reported.lock();
        if reported.len() >= CLEAR_AT {
            reported.retain(|_, at| at.elapsed() < MESSAGE_PERIOD);
        }
        reported.insert(uid.clone(), Instant::now());
    }
}

/// Returns whether a condition reports a failure.
pub(super) fn is_failure(condition: &Value) -> bool {
    condition["status"] == "False" && condition["reason"] == FAILED
}

/// Returns whether a condition reports a pause.
fn is_pause(condition: &Value) -> bool {
    condition["status"] == "Unknown" && condition["reason"] == PAUSED
}

/// Returns whether this reporter wrote a condition.
///
/// Others may use the same reasons, so the status and the message are checked too.
pub(super) fn is_ours(condition: &Value) -> bool {
    let has_message = condition["message"]
        .as_str()
        .is_some_and(|text| !text.is_empty());
    match condition["reason"].as_str() {
        Some(FAILED) => is_failure(condition),
        Some(RECONCILED) => condition["status"] == "True" && !has_message,
        Some(PAUSED) => is_pause(condition),
        _ => false,
    }
}

/// Returns an error as one line that fits into a condition.
fn one_line(error: &HandlerError) -> String {
    let text = error.to_string();
    let words = text.split(['\n', '\r']).map(str::trim);
    let line = words
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    match line.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => line[..end].to_owned(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line_that_is_not_too_long() {
        let error = HandlerError::from("one\n  two\r\n\nthree");
        assert_eq!(one_line(&error), "one two three");
        let error = HandlerError::from("ä".repeat(LONGEST_MESSAGE + 5));
        assert_eq!(one_line(&error).chars().count(), LONGEST_MESSAGE);
    }
}
