//! Checks of the server's history, shared by the namespaces of a kind.

use std::cmp::Ordering;
use std::sync::Arc;

use lariat_core::{ObjectKey, RawObject, ResourceVersion};
use parking_lot::Mutex;
use tokio::time::Instant;

/// What the reflectors of one kind know about the server's history together.
///
/// All of them ask for the newest object of the kind, so one answer is enough for those that had lost their watch when
/// it was asked for. After a failed check each asks by itself: waiting for one failure after the other would take long.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedChecks {
    evidence: Arc<Mutex<Evidence>>,
    last: Arc<tokio::sync::Mutex<LastCheck>>,
}

/// What reflectors have read that need a check.
#[derive(Debug, Clone, Default)]
pub(super) struct Evidence {
    /// The newest version that any of them has reached.
    pub(super) reached: ResourceVersion,
    /// The newest deletion, and the version that the watch which reported it has reached.
    pub(super) ended: Option<(Ended, ResourceVersion)>,
}

/// A deletion that a watch reported, with no object of the key since.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) key: ObjectKey,
    pub(super) version: ResourceVersion,
}

impl Ended {
    pub(super) fn of(last: &RawObject) -> Self {
        Self {
            key: last.key().clone(),
            version: last.version().clone(),
        }
    }

    pub(super) fn key(&self) -> &ObjectKey {
        &self.key
    }
}

/// When the last check began that found the same history, or failed.
#[derive(Debug, Default)]
struct LastCheck {
    same: Option<Instant>,
    failed: Option<Instant>,
}

/// A check that a reflector needs, or not.
pub(super) enum Turn<'a> {
    /// Another reflector has found the same history meanwhile.
    Same,
    /// This reflector asks.
    Asks(Asking<'a>),
}

/// The turn of a reflector; others wait for it unless a check has failed.
pub(super) struct Asking<'a> {
    last: Option<tokio::sync::MutexGuard<'a, LastCheck>>,
    begun: Instant,
}

impl SharedChecks {
    /// Adds what a reflector has read until its watch ended.
    pub(super) fn add(&self, since: &ResourceVersion, ended: Option<&Ended>) {
        self.evidence.lock().add(since, ended);
    }

    /// Takes what was added since the last check, and adds what this reflector has read.
    pub(super) fn take(&self, since: &ResourceVersion, ended: Option<&Ended>) -> Evidence {
        let mut evidence = self.evidence.lock();
        // A check that failed has taken it.
        evidence.add(since, ended);
        std::mem::take(&mut *evidence)
    }

    /// Waits until another reflector has asked, or it is this one's turn; `lost` is when it lost its watch.
    pub(super) async fn turn(&self, lost: Instant) -> Turn<'_> {
        let last = self.last.lock().await;
        let is_later = |begun: Option<Instant>| begun.is_some_and(|begun| begun >= lost);
        if is_later(last.same) {
            return Turn::Same;
        }
        let last = Some(last).filter(|last| !is_later(last.failed));
        let begun = Instant::now();
        Turn::Asks(Asking { last, begun })
    }
}

impl Evidence {
    fn add(&mut self, since: &ResourceVersion, ended: Option<&Ended>) {
        if self.reached.is_empty() || is_less(&self.reached, since) {
            self.reached = since.clone();
        }
        let known = self.ended.as_ref();
        let is_newer =
            |ended: &&Ended| known.is_none_or(|(known, _)| is_less(&known.version, &ended.version));
        if let Some(ended) = ended.filter(is_newer) {
            self.ended = Some((ended.clone(), since.clone()));
        }
    }
}

impl Asking<'_> {
    /// Ends the turn.
    pub(super) fn end(self, is_same: bool) {
        if let Some(mut last) = self.last {
            let begun = Some(self.begun);
            if is_same {
                last.same = begun;
            } else {
                last.failed = begun;
            }
        }
    }
}

fn is_less(one: &ResourceVersion, other: &ResourceVersion) -> bool {
    one.compare(other) == Some(Ordering::Less)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time;

    use super::*;

    async fn asks(checks: &SharedChecks, lost: Instant) -> Option<Asking<'_>> {
        match checks.turn(lost).await {
            Turn::Same => None,
            Turn::Asks(asking) => Some(asking),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn history_check_serves_watches_lost_before_it() {
        let checks = SharedChecks::default();
        let lost = Instant::now();
        asks(&checks, lost).await.expect("the first asks").end(true);
        for _ in 0..3 {
            assert!(asks(&checks, lost).await.is_none());
        }
        time::advance(Duration::from_millis(1)).await;
        assert!(asks(&checks, Instant::now()).await.is_some(), "lost later");
    }

    #[tokio::test(start_paused = true)]
    async fn failed_history_check_lets_all_namespaces_ask() {
        let checks = SharedChecks::default();
        let lost = Instant::now();
        asks(&checks, lost)
            .await
            .expect("the first asks")
            .end(false);
        let second = asks(&checks, lost).await.expect("it asks");
        let third = time::timeout(Duration::from_secs(1), asks(&checks, lost)).await;
        assert!(third.expect("it need not wait").is_some());
        drop(second);
    }
}
