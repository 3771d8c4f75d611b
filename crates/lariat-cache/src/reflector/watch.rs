//! Watches: following changes from a version, or from the beginning as a watch list.

use std::time::Duration;

use lariat_core::{ResourceVersion, describe};
use lariat_flight::{End, NextStep, Reflected, Stage};
use tokio::task;
use tokio::time::{self, Instant};

use super::cursor::Cursor;
use super::error::ReflectorError;
use super::policy::{self, Attempt, Decision, SHORTEST_WATCH};
use super::reflector::{Failure, Reflector, ReflectorStep};
use super::span;
use super::stream::{End as StreamEnd, WatchStream};
use crate::publish::{Phase, Reconnect};

/// The minimum duration that is requested for a watch.
///
/// A random time of up to the same length is added, so that watches do not end together.
const WATCH_TIMEOUT: Duration = Duration::from_secs(300);

/// How long the first watch after a warm restart must be open to count as working.
const CONFIRMATION: Duration = Duration::from_secs(1);

/// How long a watch list may yield no new object without its end marker.
const INITIAL_SILENCE: Duration = Duration::from_secs(10);

/// How long nothing must arrive before recently changed objects are packed.
const REST: Duration = Duration::from_secs(1);

impl Reflector {
    /// Watches from a version until the watch ends.
    pub(super) async fn watch(&mut self, since: ResourceVersion) -> Result<ReflectorStep, Failure> {
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
        // Before any event is applied: the new watch may report late what the previous one lost.
        store.watch_opened(self.reading.namespace.as_deref());
        let stream = WatchStream::new(
            response.into_body(),
            self.silence_limit.for_timeout(timeout),
        );
        let cursor = Cursor::at(since, timeout);
        self.follow(stream, cursor).await
    }

    /// Watches from the beginning: all objects, then changes (a watch list).
    ///
    /// If the server does not support that, or sends no end marker, lists are used for a while.
    pub(super) async fn stream(&mut self) -> Result<ReflectorStep, Failure> {
        self.record(|_| Reflected::StreamBegan {});
        let timeout = watch_timeout();
        // Before the request: the answer need not contain a write that was concurrent with it.
        let loading = self.begin_loading();
        let request = self.request(self.queries.stream(timeout), true);
        let response = match self.open(request).await {
            Ok(response) => response,
            Err(error) => return self.without_streaming(error, Duration::ZERO),
        };
        self.progress.watch_opened();
        let stream = WatchStream::new(
            response.into_body(),
            self.silence_limit.for_timeout(timeout),
        );
        let mut cursor = Cursor::new(timeout);
        (cursor.loading, cursor.last_new) = (Some(loading), Some(Instant::now()));
        self.follow(stream, cursor).await
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
    pub(super) async fn follow(
        &mut self,
        mut stream: WatchStream,
        mut cursor: Cursor,
    ) -> Result<ReflectorStep, Failure> {
        let opened = Instant::now();
        let end = self.until_end(&mut stream, &mut cursor).await;
        span::received(cursor.lines);
        if cursor.is_reread {
            return Ok(self.reread());
        }
        self.progress.watch_ended();
        // The end marker has not come, so the store is incomplete and nothing can continue from here.
        if cursor.loading.is_some() {
            let error = match end {
                Ok(()) => ReflectorError::EndedImmediately,
                Err(error) => error,
            };
            return self.without_streaming(error, opened.elapsed());
        }
        let lasted = opened.elapsed();
        // The server accepts watches but closes them: without this it would be a hot loop.
        let end = match end {
            Ok(()) if lasted < SHORTEST_WATCH && !cursor.has_events => {
                Err(ReflectorError::EndedImmediately)
            }
            end => end,
        };
        let reason = end
            .as_ref()
            .map_or_else(ReflectorError::end, |()| End::Closed);
        // A watch from the version of the list has worked, so the next list can be in pages again.
        if cursor.has_events {
            self.in_one_piece &= policy::is_useless(reason);
        }
        if reason == End::Silent {
            self.silence_limit.passed();
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
        self.progress.interrupted(describe(error));
    }

    /// Applies the events of a watch until it ends.
    async fn until_end(&mut self, stream: &mut WatchStream, cursor: &mut Cursor) -> StreamEnd {
        if cursor.loading.is_none() && !self.progress.is_synced() {
            // The store was loaded from an earlier run; a watch that stays open shows that its version is still valid.
            if let Ok(Some(end)) = time::timeout(CONFIRMATION, stream.read()).await {
                return end;
            }
            self.take_in(stream, cursor)?;
            self.progress.enter(Phase::Synced);
        }
        let mut rereads = self.reading.rereads.clone();
        loop {
            let silence_limit = cursor.loading.is_some().then_some(INITIAL_SILENCE);
            let read = tokio::select! {
                biased;
                // A load is not cancelled, as in `run_until`.
                () = rereads.next(), if cursor.loading.is_none() => {
                    cursor.is_reread = true;
                    return Ok(());
                }
                read = stream.read_within(silence_limit) => read,
                // A quiet second: packing now delays no event, and handlers have read the new states.
                () = time::sleep(REST), if self.publisher.store().has_waiting() => {
                    self.publisher.rest();
                    continue;
                }
            };
            match read {
                None => {}
                // The server sends initial objects, but not the marker of their end.
                Some(Err(ReflectorError::Silent { .. })) if silence_limit.is_some() => {
                    return Err(ReflectorError::NoEndMarker);
                }
                Some(end) => return end,
            }
            self.take_in(stream, cursor)?;
            // If bytes are always available, nothing else in this loop yields to other tasks.
            task::consume_budget().await;
            // Changes keep arriving and hide that the marker does not come.
            let is_stale = |last_new: Instant| last_new.elapsed() >= INITIAL_SILENCE;
            if cursor.loading.is_some() && cursor.last_new.is_some_and(is_stale) {
                return Err(ReflectorError::NoEndMarker);
            }
        }
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
    WATCH_TIMEOUT.mul_f64(1.0 + fastrand::f64())
}
