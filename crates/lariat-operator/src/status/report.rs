//! Telling of failures and success in a condition.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::View;
use lariat_controller::HandlerError;
use lariat_core::Uid;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::condition::{ConditionError, ConditionUpdate, LONGEST_MESSAGE, check_type};
use super::error::StatusError;
use crate::reconciler::Reconcile;

const FAILED: &str = "ReconcileError";
const RECONCILED: &str = "Reconciled";

/// How long another message of the same failure is not worth a write. Every write is a change that calls the
/// reconciler.
const MESSAGE_PERIOD: Duration = Duration::from_secs(60);

/// How many times are kept before those that no longer matter are thrown away.
const CLEAR_AT: usize = 1024;

/// From which attempt on a conflict is worth telling: most are over with the next state.
const TOLD_CONFLICT: u32 = 3;

/// Tells how reconciling went in a condition of one type.
pub(crate) struct Report {
    kind: Arc<str>,
    /// When failures of an object were last told.
    told: Mutex<HashMap<Uid, Instant>>,
}

impl Report {
    pub(super) fn new(kind: &str) -> Self {
        Self {
            kind: kind.into(),
            told: Mutex::default(),
        }
    }

    /// Returns the type of the condition.
    pub(crate) fn kind(&self) -> Arc<str> {
        Arc::clone(&self.kind)
    }

    pub(crate) fn check(&self) -> Result<(), ConditionError> {
        check_type(&self.kind)
    }

    /// Tells of a failure, or of success. It never fails: an error about the telling must not hide the error told.
    pub(crate) async fn tell<K: View>(&self, cx: &Reconcile<K>, error: Option<&HandlerError>) {
        let written = match error {
            Some(error) => self.tell_failure(cx, error).await,
            None => self.tell_success(cx).await,
        };
        let (kind, key, condition) = (cx.gvk(), cx.key(), &*self.kind);
        match written {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                let error = lariat_core::describe(&error);
                tracing::warn!(%kind, %key, condition, error, "cannot write a condition");
            }
        }
    }

    async fn tell_failure<K: View>(
        &self,
        cx: &Reconcile<K>,
        error: &HandlerError,
    ) -> Result<bool, StatusError> {
        let is_passing = error.is_conflict() && cx.attempt() < TOLD_CONFLICT;
        if error.is_ignored() || is_passing {
            return Ok(false);
        }
        let update = ConditionUpdate::is_false(&self.kind, FAILED).message(one_line(error));
        let uid = cx.raw().uid();
        let told = self.told.lock().get(uid).copied();
        let is_fresh = told.is_some_and(|told| told.elapsed() < MESSAGE_PERIOD);
        let generation = cx.raw().generation();
        // A message alone can wait; that it fails, or that another spec does, cannot.
        let worth = |was: Option<&Value>| {
            let is_known = was.is_some_and(|was| {
                let seen = was["observedGeneration"].as_i64();
                let is_failure = was["status"] == "False" && was["reason"] == FAILED;
                is_failure && (seen.is_none() || seen == generation)
            });
            !(is_known && is_fresh)
        };
        let written = cx.status().condition(&update, worth).await?;
        if written {
            self.remember(uid);
        }
        Ok(written)
    }

    async fn tell_success<K: View>(&self, cx: &Reconcile<K>) -> Result<bool, StatusError> {
        if cx.own().lock().conditions.contains(&*self.kind) {
            return Ok(false);
        }
        let update = ConditionUpdate::is_true(&self.kind, RECONCILED);
        cx.status().condition(&update, |_| true).await
    }

    fn remember(&self, uid: &Uid) {
        let mut told = self.told.lock();
        if told.len() >= CLEAR_AT {
            told.retain(|_, at| at.elapsed() < MESSAGE_PERIOD);
        }
        told.insert(uid.clone(), Instant::now());
    }
}

/// Returns whether a condition is as it is told by us; others use our reasons too.
pub(super) fn is_ours(condition: &Value) -> bool {
    let has_message = condition["message"]
        .as_str()
        .is_some_and(|text| !text.is_empty());
    match condition["reason"].as_str() {
        Some(FAILED) => condition["status"] == "False",
        Some(RECONCILED) => condition["status"] == "True" && !has_message,
        _ => false,
    }
}

/// Writes an error on one line that fits into a condition.
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
