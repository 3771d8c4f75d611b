//! Watches: following what happens since a version, or since the beginning.

use std::cmp::Ordering;
use std::time::Duration;

use lariat_core::{RawObject, ResourceVersion, describe};
use tokio::time::{self, Instant};

use super::error::ReflectorError;
use super::event::WatchEvent;
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

/// How many watches in a row may tell nothing at all before a new list is tried instead. The API server sends
/// bookmarks; a server that went back in time is silent until it has caught up.
const SILENT_WATCHES: u32 = 2;

/// How long a watch that begins with everything there is may show nothing new, before it is taken for
/// one that never says where that ends.
const INITIAL_SILENCE: Duration = Duration::from_secs(10);

/// How many such watches may break off before lists are used.
const STREAM_ATTEMPTS: u32 = 3;

/// How long a watch that goes on from an earlier run has to be open before it counts as one that works.
const CONFIRMATION: Duration = Duration::from_secs(1);

/// How far a watch has come.
#[derive(Debug, Default)]
struct Cursor {
    version: ResourceVersion,
    /// Whether it has told anything.
    told: bool,
    /// What there is, until all of it has been told.
    loading: Option<Loading>,
    /// When something new was told last while loading.
    news: Option<Instant>,
}

impl Reflector {
    /// Watches from a version on, until the watch ends.
    pub(super) async fn watch(&mut self, since: ResourceVersion) -> Result<Step, Failure> {
        let timeout = watch_timeout();
        let response = match self.open(self.queries.watch(&since, timeout), true).await {
            Ok(response) => response,
            Err(error) => return Err(self.failure(error, since)),
        };
        self.progress.watch_opened();
        let stream = WatchStream::new(response.into_body(), timeout, self.bookmarks);
        let cursor = Cursor {
            version: since,
            ..Cursor::default()
        };
        self.follow(stream, cursor).await
    }

    /// Watches from the beginning: everything there is, then what happens.
    ///
    /// Where the server refuses that, or never says where the beginning ends, lists are used from then on.
    pub(super) async fn stream(&mut self) -> Result<Step, Failure> {
        let timeout = watch_timeout();
        // Before the request: what is written meanwhile need not be in the answer.
        let loading = self.begin_loading();
        let response = match self.open(self.queries.stream(timeout), true).await {
            Ok(response) => response,
            Err(error) => {
                // Neither an overloaded server nor one that is away says anything about streams.
                let refused =
                    matches!(&error, ReflectorError::Refused { code, .. } if *code != 429);
                self.broken_streams += u32::from(refused);
                return self.without_streaming(error);
            }
        };
        self.progress.watch_opened();
        let stream = WatchStream::new(response.into_body(), timeout, self.bookmarks);
        let cursor = Cursor {
            loading: Some(loading),
            news: Some(Instant::now()),
            ..Cursor::default()
        };
        self.follow(stream, cursor).await
    }

    /// Says what follows a stream that did not get as far as its marker.
    fn without_streaming(&mut self, error: ReflectorError) -> Result<Step, Failure> {
        let kind = self.progress.gvk();
        if error.refuses_streaming() || self.broken_streams >= STREAM_ATTEMPTS {
            tracing::debug!(%kind, error = %describe(&error), "lists are used instead of streams");
            self.reading.streams = false;
        }
        if error.refuses_streaming() {
            self.progress.reconnects(error.reason());
            return Ok(Step::Load);
        }
        let next = Step::Load;
        Err(Failure { error, next })
    }

    async fn follow(
        &mut self,
        mut stream: WatchStream,
        mut cursor: Cursor,
    ) -> Result<Step, Failure> {
        let opened = Instant::now();
        let end = self.until_end(&mut stream, &mut cursor).await;
        if cursor.loading.is_some() {
            let error = match end {
                Ok(()) => ReflectorError::EndedAtOnce,
                Err(error) => error,
            };
            self.broken_streams += 1;
            return self.without_streaming(error);
        }
        let lasted = opened.elapsed();
        let useless = matches!(
            end,
            Err(ReflectorError::Malformed { .. }
                | ReflectorError::Expired { .. }
                | ReflectorError::WentBack)
        );
        if lasted >= LASTING_WATCH || (cursor.told && !useless) {
            self.backoff.reset();
        }
        if cursor.told {
            (self.silent_watches, self.in_one_piece) = (0, self.in_one_piece && useless);
        } else if end.is_ok() && lasted >= LASTING_WATCH {
            self.silent_watches += 1;
        }
        let brief = lasted < SHORTEST_WATCH;
        match end {
            Ok(()) if brief && !cursor.told => {
                return Err(self.failure(ReflectorError::EndedAtOnce, cursor.version));
            }
            // A watch that has told something may be cut at any time; going on at once is the rule.
            Err(error) if !(cursor.told && error.is_interruption()) => {
                return Err(self.failure(error, cursor.version));
            }
            Ok(()) => self.progress.reconnects(Reconnect::Closed),
            Err(error) => {
                let kind = self.progress.gvk();
                tracing::debug!(%kind, error = %describe(&error), "watch is opened again");
                self.progress.reconnects(error.reason());
            }
        }
        if self.silent_watches >= SILENT_WATCHES {
            return Ok(Step::Load);
        }
        if brief {
            time::sleep(REOPEN_PAUSE).await;
        }
        Ok(Step::Watch {
            since: cursor.version,
        })
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
        let mut deltas: Vec<Delta> = Vec::new();
        let mut outcome = Ok(());
        while outcome.is_ok()
            && let Some(line) = stream.next_line()
        {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let event = WatchEvent::parse(&line);
            outcome = event
                .map_err(|detail| self.malformed(detail))
                .and_then(|event| self.event(event, stream, cursor, &mut deltas));
        }
        self.publisher.apply(deltas, self.intake.content());
        if let Some(loading) = &mut cursor.loading {
            self.show(loading, None);
        } else if cursor.told {
            self.progress.reached(&cursor.version);
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
                Err(error) => return Err(self.malformed(error.to_string())),
            },
            WatchEvent::Deleted(json) => {
                let read = self.intake.read(json);
                let last = read.map_err(|error| self.malformed(error.to_string()))?;
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
                if version.compare(&cursor.version) == Some(Ordering::Less) {
                    return Err(ReflectorError::WentBack);
                }
                // The marker says nothing of bookmarks later on.
                if !ends_initial {
                    self.bookmarks = true;
                    stream.bookmarked();
                }
                cursor.move_to(&version);
                if ends_initial && let Some(loading) = cursor.loading.take() {
                    self.broken_streams = 0;
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

    /// Reports a line that is not understood. What it would have told is lost, so only a list makes the
    /// store right again.
    fn malformed(&self, detail: String) -> ReflectorError {
        self.progress.unreadable(&detail);
        let verb = "watch";
        ReflectorError::Malformed { verb, detail }
    }

    /// Says what follows a watch that failed: another from the same version, or a new list.
    fn failure(&mut self, error: ReflectorError, since: ResourceVersion) -> Failure {
        // A server that went back in time is silent until it has caught up; a list shows where it is.
        if matches!(error, ReflectorError::Silent { .. }) {
            self.silent_watches += 1;
        }
        let goes_on = error.keeps_version()
            && self.silent_watches < SILENT_WATCHES
            && self.backoff.failures() < WATCH_ATTEMPTS;
        let next = match goes_on {
            true => Step::Watch { since },
            false => Step::Load,
        };
        Failure { error, next }
    }
}

fn watch_timeout() -> Duration {
    WATCH_TIMEOUT.mul_f64(1.0 + fastrand::f64())
}

impl Cursor {
    fn move_to(&mut self, version: &ResourceVersion) {
        self.told = true;
        if !version.is_empty() {
            self.version = version.clone();
        }
    }
}
