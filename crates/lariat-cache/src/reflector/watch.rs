//! Watches: following what happens since a version, or since the beginning.

use std::cmp::Ordering;
use std::time::Duration;

use lariat_core::{RawObject, ResourceVersion, describe};
use tokio::task;
use tokio::time::{self, Instant};

use super::error::ReflectorError;
use super::event::WatchEvent;
use super::initial::INITIAL_SILENCE;
use super::loading::Loading;
use super::stream::{End, WatchStream};
use super::{Failure, Reflector, Step};
use crate::informer::{Phase, Reconnect};
use crate::store::Delta;

/// How long a watch is asked to last, at least; up to as much again is added at random.
const WATCH_TIMEOUT: Duration = Duration::from_secs(300);

/// A watch that ends sooner than this and told nothing has failed.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);

/// A watch that lasted longer has worked, whatever ended it.
const LASTING_WATCH: Duration = Duration::from_secs(60);

/// How long to wait after a watch that told something but was that short.
const REOPEN_PAUSE: Duration = Duration::from_millis(100);

/// How many watches in a row may fail before a new list is tried instead.
const WATCH_ATTEMPTS: u32 = 5;

/// How many watches in a row may be silent before a new list is tried instead, where the server does not answer what its
/// history is: one that went back in time is silent until it has caught up.
pub(super) const SILENT_WATCHES: u32 = 2;

/// How long a watch that goes on from an earlier run has to be open before it counts as one that works.
const CONFIRMATION: Duration = Duration::from_secs(1);

/// How far a watch has come.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    version: ResourceVersion,
    /// How long the watch was asked to last.
    timeout: Duration,
    /// Whether it has told anything.
    told: bool,
    /// What there is, until all of it has been told.
    pub(super) loading: Option<Loading>,
    /// When something new was told last while loading.
    pub(super) news: Option<Instant>,
}

impl Reflector {
    /// Watches from a version on, until the watch ends.
    pub(super) async fn watch(&mut self, since: ResourceVersion) -> Result<Step, Failure> {
        let timeout = watch_timeout();
        let request = self.request(self.queries.watch(&since, timeout), true);
        let response = match self.open(request).await {
            Ok(response) => response,
            Err(error) => return Err(self.failure(error, since)),
        };
        self.progress.watch_opened();
        let stream = WatchStream::new(response.into_body(), self.patience.with(timeout));
        let cursor = Cursor {
            version: since,
            ..Cursor::new(timeout)
        };
        self.follow(stream, cursor).await
    }

    /// Takes in what a watch says until it ends, and says what follows.
    pub(super) async fn follow(
        &mut self,
        mut stream: WatchStream,
        mut cursor: Cursor,
    ) -> Result<Step, Failure> {
        let opened = Instant::now();
        let end = self.until_end(&mut stream, &mut cursor).await;
        self.progress.watch_ended();
        if cursor.loading.is_some() {
            let error = match end {
                Ok(()) => ReflectorError::EndedAtOnce,
                Err(error) => error,
            };
            return self.without_streaming(error);
        }
        let lasted = opened.elapsed();
        self.learn(&cursor, &end, lasted);
        let brief = lasted < SHORTEST_WATCH;
        let worked = cursor.told || lasted >= LASTING_WATCH;
        match end {
            Ok(()) if brief && !cursor.told => {
                return Err(self.failure(ReflectorError::EndedAtOnce, cursor.version));
            }
            Ok(()) => self.progress.reconnects(Reconnect::Closed),
            // A watch that has worked may be cut at any time; going on at once is the rule.
            Err(error) if worked && error.is_interruption() => self.interrupted(&error),
            Err(error) => return Err(self.failure(error, cursor.version)),
        }
        if brief {
            time::sleep(REOPEN_PAUSE).await;
        }
        Ok(Step::Watch {
            since: cursor.version,
        })
    }

    /// Notes what a watch that has ended says about the server.
    fn learn(&mut self, cursor: &Cursor, end: &End, lasted: Duration) {
        let useless = matches!(
            end,
            Err(ReflectorError::Malformed { .. }
                | ReflectorError::Expired { .. }
                | ReflectorError::WentBack)
        );
        if lasted >= LASTING_WATCH || (cursor.told && !useless) {
            self.backoff.reset();
            self.failed_watches = 0;
        }
        if cursor.told {
            (self.silent_watches, self.in_one_piece) = (0, self.in_one_piece && useless);
        } else if lasted >= LASTING_WATCH {
            self.silent_watches += 1;
        }
        // A server that went back in time is silent until it has caught up.
        self.is_verified &= self.silent_watches < SILENT_WATCHES;
        if matches!(end, Err(ReflectorError::Silent { .. })) {
            self.patience.ran_out();
        }
    }

    /// Notes that a watch stopped without the server's saying so.
    fn interrupted(&mut self, error: &ReflectorError) {
        self.is_verified = false;
        self.progress.reconnects(error.reason());
        self.progress.interrupted(describe(error));
    }

    /// Takes in what a watch tells until it ends.
    async fn until_end(&mut self, stream: &mut WatchStream, cursor: &mut Cursor) -> End {
        if cursor.loading.is_none() && !self.progress.is_synced() {
            // The store was filled by an earlier run, and this watch shows whether that still holds.
            if let Ok(Some(end)) = time::timeout(CONFIRMATION, stream.read()).await {
                return end;
            }
            self.take_in(stream, cursor)?;
            self.progress.enter(Phase::Synced);
        }
        loop {
            let patience = cursor.loading.is_some().then_some(INITIAL_SILENCE);
            match stream.read_within(patience).await {
                None => {}
                Some(Err(ReflectorError::Silent { .. })) if patience.is_some() => {
                    return Err(ReflectorError::NoEndMarker);
                }
                Some(end) => return end,
            }
            self.take_in(stream, cursor)?;
            // Where bytes are always there, nothing else makes way for other tasks.
            task::consume_budget().await;
            let is_stale = |news: Instant| news.elapsed() >= INITIAL_SILENCE;
            if cursor.loading.is_some() && cursor.news.is_some_and(is_stale) {
                return Err(ReflectorError::NoEndMarker);
            }
        }
    }

    /// Takes in the whole lines a watch has delivered.
    fn take_in(
        &mut self,
        stream: &mut WatchStream,
        cursor: &mut Cursor,
    ) -> Result<(), ReflectorError> {
        self.progress.heard();
        self.patience.heard();
        let mut deltas: Vec<Delta> = Vec::new();
        let mut outcome = Ok(());
        while outcome.is_ok()
            && let Some(line) = stream.next_line()
        {
            if line.trim_ascii().is_empty() {
                continue;
            }
            outcome = self.line(&line, stream, cursor, &mut deltas);
        }
        self.publisher.apply(deltas, self.intake.content());
        if let Some(loading) = &mut cursor.loading {
            self.show(loading, None);
        } else if cursor.told {
            self.reached = cursor.version.clone();
            self.progress.reached(&cursor.version);
        }
        outcome
    }

    /// Takes in a line. One that is not understood is reported: what it would have said is lost, so only a list makes
    /// the store right again.
    fn line(
        &mut self,
        line: &[u8],
        stream: &mut WatchStream,
        cursor: &mut Cursor,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), ReflectorError> {
        let mut outcome = match WatchEvent::parse(line) {
            Ok(event) => self.event(event, stream, cursor, deltas),
            Err(detail) => Err(malformed(detail)),
        };
        if let Err(ReflectorError::Malformed { .. }) = outcome
            && let Some(event) = WatchEvent::unusual(line)
        {
            outcome = self.event(event, stream, cursor, deltas);
        }
        if let Err(ReflectorError::Malformed { detail, .. }) = &outcome {
            self.progress.unreadable(detail);
        }
        outcome
    }

    fn event(
        &mut self,
        event: WatchEvent<'_>,
        stream: &mut WatchStream,
        cursor: &mut Cursor,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), ReflectorError> {
        match event {
            WatchEvent::Added(json) if cursor.loading.is_some() => {
                cursor.news = Some(Instant::now());
                return self.load_from(cursor, json);
            }
            WatchEvent::Modified(json) if cursor.loading.is_some() => {
                return self.load_from(cursor, json);
            }
            WatchEvent::Added(json) | WatchEvent::Modified(json) => match self.intake.read(json) {
                Ok(object) => {
                    cursor.move_to(object.version());
                    deltas.push(Delta::Present(object));
                }
                // It is there, so its last readable state is better than none.
                Err(error) if RawObject::key_of(json).is_some() => {
                    cursor.told = true;
                    self.progress.unreadable(&error);
                }
                Err(error) => return Err(malformed(error.to_string())),
            },
            WatchEvent::Deleted(json) => {
                let read = self.intake.read(json);
                let last = read.map_err(|error| malformed(error.to_string()))?;
                if let Some(loading) = &mut cursor.loading {
                    self.show(loading, None);
                }
                cursor.move_to(last.version());
                deltas.push(Delta::Gone(last));
            }
            WatchEvent::Bookmark {
                version,
                ends_initial,
            } => {
                // While contents are compared because of a failure, an earlier version is no news.
                let went_back = self.is_verified && self.went_back(&version);
                if went_back || version.compare(&cursor.version) == Some(Ordering::Less) {
                    self.reading.server.restored();
                    return Err(ReflectorError::WentBack);
                }
                // The marker says nothing of bookmarks later on.
                if !ends_initial {
                    self.patience.bookmarked();
                    stream.set_patience(self.patience.with(cursor.timeout));
                }
                cursor.move_to(&version);
                if ends_initial && let Some(loading) = cursor.loading.take() {
                    self.publisher
                        .apply(std::mem::take(deltas), self.intake.content());
                    self.end_loading(loading, &version);
                }
            }
            WatchEvent::Error(error) => return Err(error),
        }
        Ok(())
    }

    fn load_from(&mut self, cursor: &mut Cursor, json: &[u8]) -> Result<(), ReflectorError> {
        if let Some(loading) = &mut cursor.loading {
            cursor.told = true;
            self.load(loading, json)?;
        }
        Ok(())
    }

    /// Says what follows a watch that failed: another from the same version, or a new list.
    pub(super) fn failure(&mut self, error: ReflectorError, since: ResourceVersion) -> Failure {
        self.failed_watches += u32::from(error.may_lie_in_version());
        let next = if error.keeps_version() && self.failed_watches <= WATCH_ATTEMPTS {
            Step::Watch { since }
        } else {
            Step::Load
        };
        Failure { error, next }
    }
}

fn malformed(detail: String) -> ReflectorError {
    let verb = "watch";
    ReflectorError::Malformed { verb, detail }
}

pub(super) fn watch_timeout() -> Duration {
    WATCH_TIMEOUT.mul_f64(1.0 + fastrand::f64())
}

impl Cursor {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            ..Self::default()
        }
    }

    fn move_to(&mut self, version: &ResourceVersion) {
        self.told = true;
        if !version.is_empty() {
            self.version = version.clone();
        }
    }
}
