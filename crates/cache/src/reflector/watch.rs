//! Watches: following changes from a version, or from the beginning as a watch list.

use std::time::Duration;

use http::Response;
use lariat_core::{ResourceVersion, describe};
use tokio::task;
use tokio::time::{self, Instant};
use tracing::Span;

use super::end::{End, NextStep, Stage};
use super::error::ReflectorError;
use super::last_event::LastEvent;
use super::policy::{self, Attempt, Decision, SHORTEST_WATCH};
use super::position::{Cursor, OpenWatch};
use super::reflector::{Failure, Reflector, ReflectorStep};
use super::source::SourceBody;
use super::span;
use super::stream::{End as StreamEnd, WatchStream};
use crate::publish::{Phase, Reconnect};

/// The minimum duration that is requested for a watch.
///
/// A random time of up to the same length is added, so that watches do not end together.
const WATCH_TIMEOUT: Duration = Duration::from_secs(300);

/// How long the first watch after a warm restart must be open to count as working.
const CONFIRMATION: Duration = Duration::from_secs(1);

/// How long the repetition of the last event may take.
const REPETITION: Duration = Duration::from_secs(10);

/// How much before its time a watch may end that the server closes at its time.
const EARLY: Duration = Duration::from_secs(5);

/// How long a watch list may yield no new object without its end marker.
const INITIAL_SILENCE: Duration = Duration::from_secs(10);

/// How long nothing must arrive before recently changed objects are packed.
const REST: Duration = Duration::from_secs(1);

impl Reflector {
    /// Opens a watch from a version, or from right before the event that it has to repeat.
    pub(super) async fn watch(
        &mut self,
        since: ResourceVersion,
        repeats: Option<LastEvent>,
    ) -> Result<ReflectorStep, Failure> {
        self.log_began(Stage::Watch, Some(&since));
        let timeout = watch_timeout();
        let before = repeats.as_ref().map(LastEvent::before);
        let query = self
            .queries
            .watch(before.as_ref().unwrap_or(&since), timeout);
        let request = self.request(query, true);
        let requested = Instant::now();
        let starts = self.reading.server.starts.clone();
        let response = match starts.admit(self.open(request)).await {
            Ok(response) => response,
            Err(error) => {
                let decision = self.decide(Stage::Watch, error.end());
                return Err(Failure::of(error, decision, since));
            }
        };
        self.progress.watch_opened();
        let store = self.publisher.store();
        // Before any event is applied: the new watch may report late what the previous one lost.
        if store.watch_opened(self.reading.namespace.as_deref()) {
            return Ok(self.reread());
        }
        let cursor = Cursor::at(since, timeout, repeats);
        let mut open = self.opened(response, cursor, requested);
        let mut end = self.until_repeated(&mut open).await;
        // Until then the server may be another one, or one that has lost its history.
        if end.is_none() && !self.is_stale {
            self.progress.recovered();
        }
        if end.is_none() && !self.progress.is_synced() {
            end = self.confirm(&mut open).await;
        }
        match end {
            Some(end) => self.watch_ended(open, end).await,
            None => Ok(ReflectorStep::Follow(Box::new(open))),
        }
    }

    fn opened(
        &self,
        response: Response<SourceBody>,
        cursor: Cursor,
        requested: Instant,
    ) -> OpenWatch {
        OpenWatch {
            connection: response.extensions().get().cloned(),
            stream: WatchStream::new(
                response.into_body(),
                self.silence_limit.for_timeout(cursor.timeout),
            ),
            cursor,
            requested,
            opened: Instant::now(),
            span: Span::current(),
        }
    }

    /// Loads all objects by a watch from the beginning (a watch list), which is followed then.
    ///
    /// If the server does not support that, or sends no end marker, lists are used for a while.
    pub(super) async fn stream(&mut self) -> Result<ReflectorStep, Failure> {
        self.log_began(Stage::Stream, None);
        let timeout = watch_timeout();
        // Before the request: the answer need not contain a write that was concurrent with it.
        let loading = self.begin_loading();
        let request = self.request(self.queries.stream(timeout), true);
        let requested = Instant::now();
        let response = match self.open(request).await {
            Ok(response) => response,
            Err(error) => return self.without_streaming(error, Duration::ZERO),
        };
        self.progress.watch_opened();
        let cursor = Cursor::loading(loading, timeout);
        let mut open = self.opened(response, cursor, requested);
        let end = self.until_loaded(&mut open).await;
        let is_loaded = open.cursor.loading.is_none();
        // Not before: until the end marker, the store has the objects from before.
        if is_loaded {
            self.progress.recovered();
        }
        match end {
            Ok(()) if is_loaded => Ok(ReflectorStep::Follow(Box::new(open))),
            // The lines after the end marker.
            Err(error) if is_loaded => self.watch_ended(open, Err(error)).await,
            // The end marker has not come, so the store is incomplete and nothing can continue from here.
            end => {
                span::received(open.cursor.lines);
                self.progress.watch_ended();
                let error = end.err().unwrap_or(ReflectorError::EndedImmediately);
                self.without_streaming(error, open.opened.elapsed())
            }
        }
    }

    /// Decides about the next step after a watch list that ended before its end marker.
    pub(super) fn without_streaming(
        &mut self,
        error: ReflectorError,
        lasted: Duration,
    ) -> Result<ReflectorStep, Failure> {
        let decision = self.decide_after(&Attempt {
            stage: Stage::Stream,
            end: error.end(),
            received: false,
            lasted,
        });
        if !decision.is_failure {
            let kind = self.progress.gvk();
            tracing::debug!(%kind, error = %describe(&error), "watch lists do not work; lists are used");
            self.progress.reconnects(error.reason());
            return Ok(ReflectorStep::Load);
        }
        let (next, delay) = (ReflectorStep::Load, decision.delay);
        Err(Failure { error, next, delay })
    }

    /// Applies the events of a watch until it ends, and decides about the next step.
    pub(super) async fn follow(&mut self, mut open: OpenWatch) -> Result<ReflectorStep, Failure> {
        let end = self.until_end(&mut open).await;
        self.watch_ended(open, end).await
    }

    /// Decides about the next step after a watch of a loaded store.
    async fn watch_ended(
        &mut self,
        open: OpenWatch,
        end: StreamEnd,
    ) -> Result<ReflectorStep, Failure> {
        let cursor = open.cursor;
        span::received(cursor.lines);
        if cursor.is_reread {
            return Ok(self.reread());
        }
        self.progress.watch_ended();
        let lasted = open.opened.elapsed();
        // The server accepts watches but closes them: without this it would be a hot loop.
        let end = match end {
            Ok(()) if lasted < SHORTEST_WATCH && !cursor.has_events => {
                Err(ReflectorError::EndedImmediately)
            }
            end => end,
        };
        let is_early = open.requested.elapsed() + EARLY < cursor.timeout;
        let closed = if is_early {
            End::ClosedEarly
        } else {
            End::Closed
        };
        let reason = end.as_ref().map_or_else(ReflectorError::end, |()| closed);
        // A watch from the version of the list has worked, so the next list can be in pages again.
        if cursor.has_events {
            self.in_one_piece &= policy::is_useless(reason);
        }
        if end.as_ref().is_err_and(ReflectorError::is_silent) {
            self.silence_limit.passed();
            // The next request is sent on a fresh connection, which may lead to another server.
            if let Some(connection) = &open.connection {
                connection.report_silence();
            }
        }
        // It ended before it showed that those objects were deleted, so the next watch has to repeat the event too.
        if !cursor.unlisted.is_empty() {
            self.policy.suspect();
        }
        let decision = self.decide_after(&Attempt {
            stage: Stage::Watch,
            end: reason,
            received: cursor.has_events,
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
        Ok(ReflectorStep::Watch {
            since: cursor.version,
        })
    }

    /// Reports that a watch ended without the server closing it.
    fn interrupted(&mut self, error: &ReflectorError) {
        self.progress.reconnects(error.reason());
        if error.is_stale() {
            // Until the watch has passed the write, whatever is opened meanwhile.
            self.is_stale = true;
            self.progress.failed(&error.trouble(), None);
        } else {
            self.progress.interrupted(describe(error));
        }
    }

    /// Waits until the server has repeated the last event, if it has to; returns the end of the watch before that.
    async fn until_repeated(&mut self, open: &mut OpenWatch) -> Option<StreamEnd> {
        let OpenWatch { stream, cursor, .. } = open;
        let repeated = async {
            while cursor.repeats.is_some() {
                if let Some(end) = stream.read().await {
                    return Some(end);
                }
                if let Err(error) = self.take_in(stream, cursor) {
                    return Some(Err(error));
                }
            }
            None
        };
        // A server that has gone back behind the event is silent.
        match time::timeout(REPETITION, repeated).await {
            Ok(end) => end,
            Err(_) => Some(Err(self.other_history())),
        }
    }

    /// Waits until the first watch of a store from an earlier run shows that its version is still valid.
    ///
    /// A watch that stays open for a second shows that. Returns the end of the watch, if it ends before.
    async fn confirm(&mut self, open: &mut OpenWatch) -> Option<StreamEnd> {
        if let Ok(Some(end)) = time::timeout(CONFIRMATION, open.stream.read()).await {
            return Some(end);
        }
        if let Err(error) = self.take_in(&mut open.stream, &mut open.cursor) {
            return Some(Err(error));
        }
        self.progress.enter(Phase::Synced);
        None
    }

    /// Applies the initial objects of a watch list, up to the end marker.
    async fn until_loaded(&mut self, open: &mut OpenWatch) -> StreamEnd {
        while open.cursor.loading.is_some() {
            match open.stream.read_within(Some(INITIAL_SILENCE)).await {
                None => {}
                // The server sends initial objects, but not the marker of their end.
                Some(Err(ReflectorError::Silent { .. })) => {
                    return Err(ReflectorError::NoEndMarker);
                }
                Some(end) => return end,
            }
            self.take_in(&mut open.stream, &mut open.cursor)?;
            task::consume_budget().await;
            // Changes keep arriving and hide that the marker does not come.
            let is_stale = |last_new: Instant| last_new.elapsed() >= INITIAL_SILENCE;
            if open.cursor.loading.is_some() && open.cursor.last_new.is_some_and(is_stale) {
                return Err(ReflectorError::NoEndMarker);
            }
        }
        Ok(())
    }

    /// Applies the events of a watch until it ends.
    async fn until_end(&mut self, open: &mut OpenWatch) -> StreamEnd {
        while !open.cursor.is_reread {
            let read = tokio::select! {
                biased;
                read = open.stream.read() => read,
                // A quiet second: packing now delays no event, and handlers have read the new states.
                () = time::sleep(REST), if self.publisher.store().has_waiting() => {
                    self.publisher.rest();
                    continue;
                }
            };
            if let Some(end) = read {
                return end;
            }
            self.take_in(&mut open.stream, &mut open.cursor)?;
            // If bytes are always available, nothing else in this loop yields to other tasks.
            task::consume_budget().await;
        }
        Ok(())
    }
}

impl Failure {
    /// Creates the failure of a watch from a version, or of a check before it.
    pub(super) fn of(error: ReflectorError, decision: Decision, since: ResourceVersion) -> Self {
        let next = match decision.next {
            NextStep::Watch => ReflectorStep::Watch { since },
            NextStep::Load | NextStep::Nothing => ReflectorStep::Load,
        };
        let delay = decision.delay;
        Self { error, next, delay }
    }
}

fn watch_timeout() -> Duration {
    let seconds = WATCH_TIMEOUT.as_secs();
    Duration::from_secs(fastrand::u64(seconds..2 * seconds))
}
