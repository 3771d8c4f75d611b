//! Watches: following what happens since a version, or since the beginning.

use std::cmp::Ordering;
use std::time::Duration;

use lariat_core::{RawObject, ResourceVersion, describe};
use lariat_flight::{End, LineType, NextStep, Reflected, Stage};
use tokio::task;
use tokio::time::{self, Instant};

use super::error::ReflectorError;
use super::event::{LineForm, WatchEvent};
use super::history::Ended;
use super::initial::INITIAL_SILENCE;
use super::loading::Loading;
use super::policy::{self, Decision, Ending, SHORTEST_WATCH};
use super::stream::{End as StreamEnd, WatchStream};
use super::{Failure, Reflector, Step};
use crate::informer::{Phase, Reconnect};
use crate::store::Delta;

/// How long a watch is asked to last, at least; up to as much again is added at random.
const WATCH_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a watch that goes on from an earlier run has to be open before it counts as one that works.
const CONFIRMATION: Duration = Duration::from_secs(1);

/// How long nothing has to come before the objects that have changed lately are packed.
const REST: Duration = Duration::from_secs(1);

/// How far a watch has come.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    version: ResourceVersion,
    /// How long the watch was asked to last.
    timeout: Duration,
    /// Whether it has told anything.
    told: bool,
    /// How its lines are written.
    form: LineForm,
    /// What there is, until all of it has been told.
    pub(super) loading: Option<Loading>,
    /// When something new was told last while loading.
    pub(super) news: Option<Instant>,
    /// Whether the watch was given up because the content filter has changed.
    is_refiltered: bool,
}

impl Reflector {
    /// Watches from a version on, until the watch ends.
    pub(super) async fn watch(&mut self, since: ResourceVersion) -> Result<Step, Failure> {
        self.record(|_| Reflected::WatchBegan {
            since: (&since).into(),
        });
        let timeout = watch_timeout();
        let request = self.request(self.queries.watch(&since, timeout), true);
        let response = match self.open(request).await {
            Ok(response) => response,
            Err(error) => {
                let decision = self.decide(Stage::Watch, error.end());
                return Err(Failure::of(error, decision, since));
            }
        };
        self.progress.watch_opened();
        let store = self.publisher.store();
        store.watch_opened(self.reading.namespace.as_deref());
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
        if cursor.is_refiltered {
            return Ok(self.read_filtered());
        }
        self.progress.watch_ended();
        if cursor.loading.is_some() {
            let error = match end {
                Ok(()) => ReflectorError::EndedAtOnce,
                Err(error) => error,
            };
            return self.without_streaming(error, opened.elapsed());
        }
        let lasted = opened.elapsed();
        let end = match end {
            Ok(()) if lasted < SHORTEST_WATCH && !cursor.told => Err(ReflectorError::EndedAtOnce),
            end => end,
        };
        let why = end
            .as_ref()
            .map_or_else(ReflectorError::end, |()| End::Closed);
        if cursor.told {
            self.in_one_piece &= policy::is_useless(why);
        }
        if why == End::Silent {
            self.patience.ran_out();
        }
        let decision = self.decide_after(&Ending {
            stage: Stage::Watch,
            end: why,
            received: cursor.told,
            lasted,
        });
        match end {
            Ok(()) => self.progress.reconnects(Reconnect::Closed),
            Err(error) if !decision.is_failure => self.interrupted(&error),
            Err(error) => return Err(Failure::of(error, decision, cursor.version)),
        }
        if !decision.delay.is_zero() {
            time::sleep(decision.delay).await;
        }
        Ok(Step::Watch {
            since: cursor.version,
        })
    }

    /// Notes that a watch stopped without the server's saying so.
    fn interrupted(&mut self, error: &ReflectorError) {
        self.progress.reconnects(error.reason());
        self.progress.interrupted(describe(error));
    }

    /// Takes in what a watch tells until it ends.
    async fn until_end(&mut self, stream: &mut WatchStream, cursor: &mut Cursor) -> StreamEnd {
        if cursor.loading.is_none() && !self.progress.is_synced() {
            // The store was filled by an earlier run, and this watch shows whether that still holds.
            if let Ok(Some(end)) = time::timeout(CONFIRMATION, stream.read()).await {
                return end;
            }
            self.take_in(stream, cursor)?;
            self.progress.enter(Phase::Synced);
        }
        let mut filter = self.reading.filter.clone();
        loop {
            let patience = cursor.loading.is_some().then_some(INITIAL_SILENCE);
            let read = tokio::select! {
                biased;
                // Its initial list is not cut, as in `run`.
                () = filter.next(), if cursor.loading.is_none() => {
                    cursor.is_refiltered = true;
                    return Ok(());
                }
                read = stream.read_within(patience) => read,
                () = time::sleep(REST), if self.publisher.store().has_young() => {
                    self.publisher.rest();
                    continue;
                }
            };
            match read {
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
        let mut outcome = match cursor.form.read(line) {
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
            self.record(|_| Reflected::Unreadable {});
        }
        outcome
    }

    fn record_line(&self, line: LineType, object: &RawObject) {
        if let Some(flight) = &self.reading.flight {
            flight.line(line, object);
        }
    }

    fn event(
        &mut self,
        event: WatchEvent<'_>,
        stream: &mut WatchStream,
        cursor: &mut Cursor,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), ReflectorError> {
        let line_type = event.line_type();
        match event {
            WatchEvent::Added(json) if cursor.loading.is_some() => {
                cursor.news = Some(Instant::now());
                return self.load_from(cursor, json);
            }
            WatchEvent::Modified(json) if cursor.loading.is_some() => {
                return self.load_from(cursor, json);
            }
            WatchEvent::Added(json) | WatchEvent::Modified(json) => {
                match self.intake.watched(json, self.publisher.store()) {
                    Ok(object) => {
                        self.record_line(line_type, &object);
                        cursor.move_to(object.version());
                        // It left the selection and is back: that it is there shows no other history.
                        self.last_ended.take_if(|ended| ended.is_of(&object));
                        deltas.push(Delta::Present(object));
                    }
                    // It is there, so its last readable state is better than none.
                    Err(error) if RawObject::key_of(json).is_some() => {
                        cursor.told = true;
                        self.progress.unreadable(&error);
                    }
                    Err(error) => return Err(malformed(error.to_string())),
                }
            }
            WatchEvent::Deleted(json) => {
                let read = self.intake.watched(json, self.publisher.store());
                let last = read.map_err(|error| malformed(error.to_string()))?;
                self.record_line(line_type, &last);
                if let Some(loading) = &mut cursor.loading {
                    self.show(loading, None);
                }
                cursor.move_to(last.version());
                self.last_ended = Some(Ended::of(&last));
                deltas.push(Delta::Gone(last));
            }
            WatchEvent::Bookmark {
                version,
                ends_initial,
            } => {
                self.bookmark(&version, ends_initial, stream, cursor)?;
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

    /// Takes in a bookmark: the version up to which the watch is complete.
    fn bookmark(
        &mut self,
        version: &ResourceVersion,
        ends_initial: bool,
        stream: &mut WatchStream,
        cursor: &mut Cursor,
    ) -> Result<(), ReflectorError> {
        self.record(|_| Reflected::Bookmark {
            version: version.into(),
            ends_initial,
        });
        // While contents are compared because of a failure, an earlier version is no news.
        let went_back = self.policy.is_verified() && self.went_back(version);
        if went_back || version.compare(&cursor.version) == Some(Ordering::Less) {
            self.reading.server.restored();
            return Err(ReflectorError::WentBack);
        }
        // The marker says nothing of bookmarks later on.
        if !ends_initial {
            self.patience.bookmarked();
            let store = self.publisher.store();
            store.watch_progressed(self.reading.namespace.as_deref());
            stream.set_patience(self.patience.with(cursor.timeout));
        }
        cursor.move_to(version);
        Ok(())
    }

    fn load_from(&mut self, cursor: &mut Cursor, json: &[u8]) -> Result<(), ReflectorError> {
        if let Some(loading) = &mut cursor.loading {
            cursor.told = true;
            self.load(loading, json.into())?;
        }
        Ok(())
    }
}

impl Failure {
    /// Makes the failure of a watch from a version, or of what comes before it.
    pub(super) fn of(error: ReflectorError, decision: Decision, since: ResourceVersion) -> Self {
        let next = match decision.next {
            NextStep::Watch => Step::Watch { since },
            NextStep::Load | NextStep::Nothing => Step::Load,
        };
        let delay = decision.delay;
        Self { error, next, delay }
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
