//! Judging connections: when a fresh one is opened although the old one is open.
//!
//! A connection may lead, by way of a load balancer, to a server that answers pings and cannot do anything else any
//! more: one that has lost etcd, or whose watch cache hangs. New connections would lead to a good one. So a connection
//! is suspected after some failures in a row, a request without an answer, or a silent watch; the next request then
//! opens a fresh one. These are signs and no proof: webhooks fail too, and kinds without changes are silent. So fresh
//! connections have a pause between them, and watches are moved only if the fresh connection works.

use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use crate::request::Length;

/// How many failures in a row make a connection suspect.
const FAILURES: u32 = 5;

/// The pause between two fresh connections.
///
/// It doubles up to the longest one, until a fresh connection works.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What an answer shows about the server behind its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Works,
    Fails,
    /// An answer about the request rather than the server.
    Nothing,
}

impl Sign {
    /// Returns the sign of an answer that is read to its end.
    pub(crate) fn of(length: Length, status: StatusCode) -> Self {
        match status {
            // A server that has lost etcd opens watches from its cache, and one that is well refuses watch lists with
            // 504 while its cache is behind.
            _ if length == Length::Lasting => Self::Nothing,
            StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Self::Fails,
            status if status.is_success() => Self::Works,
            // 429 and 4xx are about the request: any server with the same caches gives the same answer.
            _ => Self::Nothing,
        }
    }
}

/// Why a connection is suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// Requests failed, or were not answered.
    Failing,
    /// A watch received nothing new for long.
    Silent,
}

/// The judgement of one connection.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Consecutive failures.
    failures: u32,
    has_worked: bool,
    suspicion: Option<Suspicion>,
    /// Whether a fresh connection takes its requests.
    is_replaced: bool,
}

impl Health {
    pub(crate) fn record(&mut self, sign: Sign) {
        match sign {
            Sign::Nothing => {}
            Sign::Works => {
                self.failures = 0;
                self.has_worked = true;
                // A silent watch is no matter of failures, so answers do not refute it.
                self.suspicion = self.suspicion.filter(|why| *why == Suspicion::Silent);
            }
            Sign::Fails => {
                self.failures += 1;
                if self.failures >= FAILURES {
                    self.suspect(Suspicion::Failing);
                }
            }
        }
    }

    pub(super) fn suspect(&mut self, suspicion: Suspicion) {
        if self.suspicion != Some(Suspicion::Failing) {
            self.suspicion = Some(suspicion);
        }
    }

    /// Returns whether a fresh connection is to be opened in its place.
    pub(crate) fn is_suspect(&self) -> bool {
        self.suspicion.is_some() && !self.is_replaced
    }

    /// Lets a fresh connection take its requests.
    pub(super) fn replace(&mut self) {
        self.is_replaced = true;
    }

    /// Takes requests again: no fresh connection could be opened.
    pub(super) fn reinstate(&mut self) {
        self.is_replaced = false;
    }

    pub(super) fn is_replaced(&self) -> bool {
        self.is_replaced
    }

    /// Returns whether a working connection shows that this one's server is bad.
    pub(super) fn is_outdone(&self) -> bool {
        self.is_replaced && self.suspicion == Some(Suspicion::Failing)
    }

    pub(super) fn is_proven(&self) -> bool {
        self.has_worked && self.suspicion.is_none()
    }
}

/// Limits how often fresh connections are opened in place of suspect ones.
#[derive(Debug)]
pub(crate) struct Replacements {
    not_before: Option<Instant>,
    pause: Duration,
}

impl Default for Replacements {
    fn default() -> Self {
        Self {
            not_before: None,
            pause: FIRST_PAUSE,
        }
    }
}

impl Replacements {
    /// Returns whether a fresh connection may be opened; if so, the next pause begins.
    pub(crate) fn begin(&mut self, now: Instant) -> bool {
        let may = self.not_before.is_none_or(|time| now >= time);
        if may {
            self.not_before = Some(now + self.pause);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        may
    }

    /// Records that a connection works which no suspicion is about.
    pub(crate) fn works(&mut self) {
        self.pause = FIRST_PAUSE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(signs: &[Sign]) -> Health {
        let mut health = Health::default();
        for sign in signs {
            health.record(*sign);
        }
        health
    }

    #[test]
    fn connection_is_suspect_after_five_failures_in_a_row() {
        use Sign::{Fails, Nothing, Works};
        for (signs, expected) in [
            (&[Fails; 4][..], false),
            (&[Fails; 5], true),
            (&[Fails, Fails, Nothing, Fails, Fails, Nothing, Fails], true),
            (&[Fails, Fails, Fails, Fails, Works, Fails, Fails], false),
            (&[Fails, Fails, Fails, Fails, Fails, Works], false),
        ] {
            assert_eq!(after(signs).is_suspect(), expected, "{signs:?}");
        }
    }

    #[test]
    fn silence_is_not_refuted_by_answers() {
        let mut health = after(&[Sign::Works]);
        health.suspect(Suspicion::Silent);
        health.record(Sign::Works);
        assert!(health.is_suspect() && !health.is_proven());
        health.replace();
        assert!(!health.is_suspect() && !health.is_outdone());
        health.suspect(Suspicion::Failing);
        assert!(health.is_outdone());
    }

    #[test]
    fn refusals_and_heads_of_watches_are_no_sign() {
        for (length, status, expected) in [
            (Length::Brief, 200, Sign::Works),
            (Length::Lasting, 200, Sign::Nothing),
            (Length::Brief, 404, Sign::Nothing),
            (Length::Brief, 410, Sign::Nothing),
            (Length::Brief, 429, Sign::Nothing),
            (Length::Brief, 501, Sign::Nothing),
            (Length::Brief, 500, Sign::Fails),
            (Length::Lasting, 504, Sign::Nothing),
            (Length::Brief, 504, Sign::Fails),
        ] {
            let status = StatusCode::from_u16(status).expect("it is a status");
            assert_eq!(Sign::of(length, status), expected, "{length:?} {status}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn fresh_connections_pause_longer_until_one_works() {
        let mut replacements = Replacements::default();
        let mut now = Instant::now();
        for pause in [10, 20, 40, 60, 60] {
            assert!(replacements.begin(now), "{pause}");
            now += Duration::from_secs(pause) - Duration::from_millis(1);
            assert!(!replacements.begin(now), "{pause}");
            now += Duration::from_millis(1);
        }
        replacements.works();
        assert!(replacements.begin(now));
        assert!(replacements.begin(now + FIRST_PAUSE));
    }
}
