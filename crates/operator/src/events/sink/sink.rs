//! Writes one Event, with retries, and logs the failures.
//!
//! The answer to a write may be lost. So a name that is taken after a lost answer is taken by this Event itself, while
//! a name that is taken at the first attempt belongs to another process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kube::Client;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Request;
use lariat_core::path_segment;
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use tokio::time;

use super::answer::WriteError;
use crate::events::correlator::{Correlator, Decision};
use crate::events::options::EventApi;
use crate::events::record::{Record, Source};
use crate::wire::{Built, Sender};

/// The number of attempts of a write.
const TRIES: u32 = 12;
/// The pause between attempts.
const PAUSE: Duration = Duration::from_secs(10);
/// The time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The counters of a recorder.
#[derive(Debug, Default)]
pub(in crate::events) struct Counts {
    pub(in crate::events) sent: AtomicU64,
    pub(in crate::events) filtered: AtomicU64,
    pub(in crate::events) failed: AtomicU64,
    pub(in crate::events) dropped: AtomicU64,
    pub(in crate::events) logged: Logged,
}

/// Whether each kind of problem was logged above debug level, which is done once.
#[derive(Debug, Default)]
pub(in crate::events) struct Logged {
    forbidden: AtomicBool,
    refused: AtomicBool,
    pub(in crate::events) full: AtomicBool,
}

/// Writes Events by the decisions of the correlator.
pub(in crate::events) struct Sink {
    pub(in crate::events) sender: Sender,
    pub(in crate::events) source: Arc<Source>,
    pub(in crate::events) correlator: Arc<Mutex<Correlator>>,
    pub(in crate::events) counts: Arc<Counts>,
}

/// What is known about an Event between the attempts to write it.
struct Attempt {
    /// Whether the Event should exist.
    exists: bool,
    /// Whether an earlier attempt may have created it, although no answer came.
    maybe_created: bool,
}

impl Sink {
    /// Creates a sender with the time limit of a request.
    pub(in crate::events) fn sender(client: Client) -> Sender {
        Sender::new(client).within(TIMEOUT)
    }

    /// Executes a decision of the correlator.
    pub(in crate::events) async fn act(&self, decision: Decision) {
        match decision {
            Decision::Create(record) => self.write(record, false).await,
            Decision::Patch(record) => self.write(record, true).await,
            Decision::Counted => {}
            Decision::Filtered => {
                self.counts.filtered.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Writes an Event, and retries after transient errors.
    pub(in crate::events) async fn write(&self, mut record: Record, exists: bool) {
        let mut attempt = Attempt {
            exists,
            maybe_created: false,
        };
        for tries in 1..=TRIES {
            match self.send(&mut record, &mut attempt).await {
                Ok(()) => {
                    self.counts.sent.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                Err(error) if error.is_transient() && tries < TRIES => {
                    // The request may have been executed although its answer was an error or was lost.
                    attempt.maybe_created = true;
                    tracing::debug!(event = %record.name, tries, "cannot write an Event, trying again: {error}");
                    time::sleep(pause(tries)).await;
                }
                Err(error) => {
                    self.counts.failed.fetch_add(1, Ordering::Relaxed);
                    self.log(&record, &error);
                    return;
                }
            }
        }
    }

    /// Makes one attempt to write an Event.
    async fn send(&self, record: &mut Record, attempt: &mut Attempt) -> Result<(), WriteError> {
        if attempt.exists {
            match self.patch(record).await {
                // The Event has expired, or was deleted: create it again.
                Err(error) if error.is_not_found() => attempt.exists = false,
                other => return other,
            }
        }
        match self.create(record).await {
            // The earlier attempt did create it, and only its answer was lost. Names of two processes are hardly ever
            // equal.
            Err(error) if error.is_already_exists() && attempt.maybe_created => Ok(()),
            // At the first attempt the name can only be taken by another process. One new name is enough.
            Err(error) if error.is_already_exists() => {
                // Another process has this name.
                self.correlator.lock().rename(record);
                self.create(record).await
            }
            other => other,
        }
    }

    async fn patch(&self, record: &Record) -> Result<(), WriteError> {
        let path = record.path().ok_or(WriteError::Namespace)?;
        let patch = Patch::Merge(record.changes());
        let request =
            Request::new(path).patch(&path_segment(&record.name), &PatchParams::default(), &patch);
        self.request(request).await
    }

    async fn create(&self, record: &Record) -> Result<(), WriteError> {
        let path = record.path().ok_or(WriteError::Namespace)?;
        let body = record.body(&self.source).map_err(WriteError::encoding)?;
        let request = Request::new(path).create(&PostParams::default(), body);
        self.request(request).await
    }

    async fn request(&self, request: Built) -> Result<(), WriteError> {
        // The answer must be JSON: a proxy may answer 200 with a page of its own.
        self.sender.json::<IgnoredAny>(request).await?;
        Ok(())
    }

    /// Logs why an Event was not written.
    ///
    /// Problems that an administrator can fix are logged as a warning, once. Events in a namespace that is being
    /// deleted always fail, which is normal.
    fn log(&self, record: &Record, error: &WriteError) {
        let logged = &self.counts.logged;
        let (kind, name) = (record.about.kind.as_deref(), record.about.name.as_deref());
        let (kind, name) = (kind.unwrap_or_default(), name.unwrap_or_default());
        let (namespace, reason) = (record.namespace(), record.event.reason());
        let (is_logged, advice) = if error.is_forbidden() {
            (&logged.forbidden, rule(record.api))
        } else {
            (&logged.refused, String::new())
        };
        if error.is_namespace_ending() || is_logged.swap(true, Ordering::Relaxed) {
            tracing::debug!(
                kind,
                namespace,
                name,
                reason,
                "an Event is not written: {error}"
            );
        } else {
            tracing::warn!(
                kind,
                namespace,
                name,
                reason,
                "an Event is not written: {error}{advice} (logged once)"
            );
        }
    }
}

/// Returns the RBAC rule that writing Events needs.
fn rule(api: EventApi) -> String {
    let group = match api {
        EventApi::Core => "",
        EventApi::Events => "events.k8s.io",
    };
    format!(
        "; it needs an RBAC rule with apiGroups [{group:?}], resources [\"events\"], verbs [\"create\", \"patch\"]"
    )
}

/// Returns the pause after a number of attempts.
///
/// The first pause is random: after an outage, not all programs should retry at the same moment.
fn pause(tries: u32) -> Duration {
    if tries > 1 {
        return PAUSE;
    }
    PAUSE.mul_f64(fastrand::f64())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
