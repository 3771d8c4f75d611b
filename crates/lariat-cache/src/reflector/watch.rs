//! Watches: following what happens since a version.

use std::time::Duration;

use lariat_core::{ResourceVersion, describe};
use tokio::time::{self, Instant};

use super::error::ReflectorError;
use super::event::WatchEvent;
use super::stream::WatchStream;
use super::{Failure, Reflector, Step, query};
use crate::store::Delta;

/// How long a watch is asked to last, at least; up to as much again is added at random.
const WATCH_TIMEOUT: Duration = Duration::from_secs(300);

/// A watch that ends sooner than this and told nothing has failed.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);

/// How long to wait after a watch that told something but was that short.
const REOPEN_PAUSE: Duration = Duration::from_millis(100);

/// How many watches in a row may fail before a new list is tried instead.
const WATCH_ATTEMPTS: u32 = 5;

impl Reflector {
    /// Watches from a version on, until the watch ends.
    pub(super) async fn watch(&mut self, since: ResourceVersion) -> Result<Step, Failure> {
        let timeout = WATCH_TIMEOUT.mul_f64(1.0 + fastrand::f64());
        let response = match self.open("watch", &query::watch(&since, timeout)).await {
            Ok(response) => response,
            Err(error) => return Err(self.failure(error, since)),
        };
        self.progress.watch_opened();
        let opened = Instant::now();
        let mut stream = WatchStream::new(response.into_body(), timeout);
        let mut cursor = Cursor {
            version: since,
            told: false,
        };
        let end = loop {
            if let Some(end) = stream.read().await {
                break end;
            }
            if let Err(error) = self.follow(&mut stream, &mut cursor) {
                break Err(error);
            }
        };
        if cursor.told && !matches!(end, Err(ReflectorError::Malformed { .. })) {
            self.backoff.reset();
        }
        let brief = opened.elapsed() < SHORTEST_WATCH;
        match end {
            Ok(()) if brief && !cursor.told => {
                return Err(self.failure(ReflectorError::EndedAtOnce, cursor.version));
            }
            // A watch that has told something may be cut at any time; going on at once is the rule.
            Err(error) if !(cursor.told && error.is_interruption()) => {
                return Err(self.failure(error, cursor.version));
            }
            Ok(()) => {}
            Err(error) => {
                let kind = self.progress.gvk();
                tracing::debug!(%kind, error = %describe(&error), "watch is opened again");
            }
        }
        if brief {
            time::sleep(REOPEN_PAUSE).await;
        }
        Ok(Step::Watch {
            since: cursor.version,
        })
    }

    /// Takes in the whole lines a watch has delivered.
    fn follow(&self, stream: &mut WatchStream, cursor: &mut Cursor) -> Result<(), ReflectorError> {
        let mut deltas: Vec<Delta> = Vec::new();
        let mut outcome = Ok(());
        while let Some(line) = stream.next_line() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match WatchEvent::parse(&line, self.progress.gvk()) {
                Ok(WatchEvent::Delta(delta, version)) => {
                    deltas.push(delta);
                    cursor.move_to(version);
                }
                Ok(WatchEvent::Unreadable(error)) => {
                    cursor.told = true;
                    self.progress.unreadable(&error);
                }
                Ok(WatchEvent::Bookmark(version)) => {
                    stream.bookmarked();
                    cursor.move_to(version);
                }
                Ok(WatchEvent::Error(error)) => {
                    outcome = Err(error);
                    break;
                }
                // What it would have told is lost, so only a list makes the store right again.
                Err(detail) => {
                    self.progress.unreadable(&detail);
                    outcome = Err(ReflectorError::Malformed {
                        verb: "watch",
                        detail,
                    });
                    break;
                }
            }
        }
        if !deltas.is_empty() {
            self.publisher.apply(deltas);
        }
        outcome
    }

    /// Says what follows a watch that failed: another from the same version, or a new list.
    fn failure(&self, error: ReflectorError, since: ResourceVersion) -> Failure {
        let next = if error.keeps_version() && self.backoff.failures() < WATCH_ATTEMPTS {
            Step::Watch { since }
        } else {
            Step::List
        };
        Failure { error, next }
    }
}

/// How far a watch has come.
#[derive(Debug)]
struct Cursor {
    version: ResourceVersion,
    /// Whether it has told anything.
    told: bool,
}

impl Cursor {
    fn move_to(&mut self, version: ResourceVersion) {
        self.told = true;
        if !version.is_empty() {
            self.version = version;
        }
    }
}
