//! The loop of a reflector: its steps, and what follows each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Response;
use lariat_core::{ResourceVersion, describe};
use tokio::time;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use super::end::{End, NextStep, Stage};
use super::error::{self, ReflectorError};
use super::intake::Intake;
use super::last_event::LastEvent;
use super::page;
use super::policy::{Attempt, Decision, ReflectorPolicy};
use super::position::OpenWatch;
use super::query::Queries;
use super::rereads::Rereads;
use super::server::SharedServer;
use super::source::{ANSWER_TIMEOUT, Source, SourceBody, SourceRequest};
use super::span;
use super::standstill::Standstill;
use super::stream::SilenceLimit;
use crate::publish::{Publisher, Reconnect, Segment, Trouble};
use crate::selection::Selection;
use crate::store::Content;

/// How old the server's version may be that another reflector has asked for, after a version that had expired.
const RECENT: Duration = Duration::from_secs(5);

/// What a reflector reads, and how.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) selection: Selection,
    /// One of the selection's namespaces; `None` for all.
    pub(crate) namespace: Option<Arc<str>>,
    /// Whether objects are loaded by watch lists.
    pub(crate) streams: bool,
    /// Whether lists may be compressed.
    pub(crate) gzip: bool,
    /// How many bytes the body of a list may have, decompressed.
    pub(crate) list_limit: usize,
    /// Whether the other namespaces of the selection are used while this one is forbidden.
    pub(crate) may_be_forbidden: bool,
    /// The version of the store, if it has objects of an earlier run.
    pub(crate) resume: Option<ResourceVersion>,
    /// What the reflectors of the factory know about the API server.
    pub(crate) server: SharedServer,
    /// Reasons to list again: changes of the content filter, and requests.
    pub(crate) rereads: Rereads,
}

/// Keeps the store of one kind, or one namespace of it, up to date.
pub(crate) struct Reflector {
    pub(super) source: Arc<dyn Source>,
    pub(super) publisher: Arc<Publisher>,
    pub(super) progress: Segment,
    pub(super) intake: Intake,
    pub(super) queries: Queries,
    pub(super) reading: Reading,
    pub(super) policy: ReflectorPolicy,
    pub(super) silence_limit: SilenceLimit,
    pub(super) standstill: Standstill,
    /// Whether the last watch was behind a write of this process, and none has passed it since.
    pub(super) is_stale: bool,
    /// The version up to which the store was read.
    pub(super) reached: ResourceVersion,
    /// The last event since the list.
    ///
    /// After a failure without an event, it is the one of the newest listed object.
    pub(super) last_event: Option<LastEvent>,
    /// Whether the server has forgotten the newest listed object.
    pub(super) is_forgotten: bool,
    /// When a request or a watch last failed, so that the server may have been restored since.
    pub(super) last_failed: time::Instant,
    /// Whether the next list is read in one piece.
    ///
    /// True if pages expire before they are read.
    pub(super) in_one_piece: bool,
}

/// Why a reflector has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It was stopped.
    Stopped,
    /// The API server does not serve the collection.
    NotServed,
}

/// The next step of a reflector.
#[derive(Debug)]
pub(super) enum ReflectorStep {
    /// Read all objects.
    Load,
    /// Follow the watch that has loaded all objects.
    Follow(Box<OpenWatch>),
    Watch {
        since: ResourceVersion,
    },
}

/// A failed step, and the step that follows after a delay.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ReflectorError,
    pub(super) next: ReflectorStep,
    pub(super) delay: Duration,
}

impl Reflector {
    pub(crate) fn new(
        source: Arc<dyn Source>,
        publisher: Arc<Publisher>,
        progress: Segment,
        intake: Intake,
        mut reading: Reading,
    ) -> Self {
        // An empty store is read now, so restores that were found before do not concern it. The objects of an earlier
        // run were read before: a kind whose first reflector starts late must notice a restore that another reflector
        // has found.
        if reading.resume.is_none() {
            reading.server.see();
        }
        // Whatever an earlier run has read may be from another history, also that there was no object.
        let is_new = reading.resume.is_none() && publisher.store().is_empty();
        Self {
            queries: Queries::new(&reading.selection),
            policy: ReflectorPolicy::new(reading.streams, is_new),
            silence_limit: SilenceLimit::default(),
            standstill: Standstill::default(),
            is_stale: false,
            reached: reading.resume.clone().unwrap_or_default(),
            last_event: reading.resume.as_ref().and_then(|since| {
                LastEvent::saved(publisher.store(), reading.namespace.as_deref(), since)
            }),
            is_forgotten: false,
            last_failed: time::Instant::now(),
            in_one_piece: false,
            source,
            publisher,
            progress,
            intake,
            reading,
        }
    }

    /// Runs until it is stopped, or the collection is not served.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Exit {
        let mut step = match self.reading.resume.take() {
            Some(since) => ReflectorStep::Watch { since },
            None => ReflectorStep::Load,
        };
        loop {
            let is_verified = self.policy.is_verified();
            // Cloned, because the step borrows the reflector while the other branches wait.
            let server = self.reading.server.clone();
            // A load is not cancelled by requests to list again: they are kept, and lead to another list after it.
            let is_watching = !matches!(step, ReflectorStep::Load);
            // A clone too: waiting must not mark a request as served, which only the begin of a list does.
            let mut rereads = self.reading.rereads.clone();
            let outcome = tokio::select! {
                biased;
                // First, so that a stop wins over a step that is ready at the same time.
                () = stop.cancelled() => break,
                // While unverified, the reflector is about to check the history itself, or is listing with a
                // comparison.
                () = server.until_restored(), if is_verified => Ok(self.read_again()),
                () = rereads.next(), if is_watching => Ok(self.reread()),
                outcome = self.take_in_span(step) => outcome,
            };
            step = match outcome {
                Ok(next) => next,
                // The informer takes over, and waits until discovery finds the kind again.
                Err(Failure { error, .. }) if error.is_not_served() => {
                    self.progress.reconnects(error.reason());
                    self.progress.failed(&error.trouble(), None);
                    return Exit::NotServed;
                }
                Err(Failure { error, next, delay }) => {
                    self.failed(&error, delay);
                    let pause = self.pause(&error, delay);
                    if stop.run_until_cancelled(pause).await.is_none() {
                        break;
                    }
                    next
                }
            };
        }
        self.progress
            .resumes_from(self.last_event.and_then(|last| last.resume()));
        Exit::Stopped
    }

    async fn take_in_span(&mut self, step: ReflectorStep) -> Result<ReflectorStep, Failure> {
        let span = self.span(&step);
        self.take(step).instrument(span).await
    }

    /// Returns the span of a load or a watch; none for a request for the server's version.
    fn span(&self, step: &ReflectorStep) -> Span {
        let (kind, namespace) = (self.progress.gvk(), self.reading.namespace.as_deref());
        match step {
            ReflectorStep::Load if self.policy.streams(now()) => span::watch(kind, namespace, None),
            ReflectorStep::Follow(open) => open.span.clone(),
            ReflectorStep::Load => span::list(kind, namespace),
            ReflectorStep::Watch { since }
                if self.policy.is_verified() || self.last_event.is_some() =>
            {
                span::watch(kind, namespace, Some(since))
            }
            ReflectorStep::Watch { .. } => Span::none(),
        }
    }

    async fn take(&mut self, step: ReflectorStep) -> Result<ReflectorStep, Failure> {
        let starts = self.reading.server.starts.clone();
        match step {
            ReflectorStep::Load if self.policy.streams(now()) => starts.admit(self.stream()).await,
            ReflectorStep::Follow(open) => self.follow(*open).await,
            ReflectorStep::Load => match starts.admit(self.list()).await {
                Ok(since) => {
                    self.log_ended(Stage::List, End::Complete, NextStep::Watch, Duration::ZERO);
                    Ok(ReflectorStep::Watch { since })
                }
                Err(error) => {
                    let decision = self.decide(Stage::List, error.end());
                    let (next, delay) = (ReflectorStep::Load, decision.delay);
                    Err(Failure { error, next, delay })
                }
            },
            ReflectorStep::Watch { since } if self.policy.is_verified() => {
                self.watch(since, None).await
            }
            // Another reflector has found a restore, which this one's own check might miss.
            ReflectorStep::Watch { .. } if self.reading.server.is_restored() => {
                Ok(self.read_again())
            }
            ReflectorStep::Watch { since } => self.resume(since).await,
        }
    }

    /// Lists again: another reflector found that the server has another history.
    fn read_again(&mut self) -> ReflectorStep {
        tracing::debug!(kind = %self.progress.gvk(), "the API server was restored; the kind is listed again");
        self.policy.suspect();
        self.progress.watch_ended();
        self.progress.reconnects(Reconnect::Failed);
        ReflectorStep::Load
    }

    /// Lists again: on request, after a change of the content filter, or for objects that a fence has hidden.
    ///
    /// The cache keeps its objects meanwhile.
    pub(super) fn reread(&mut self) -> ReflectorStep {
        tracing::debug!(kind = %self.progress.gvk(), "the kind is listed again, on request or after a change of the content filter");
        self.progress.watch_ended();
        ReflectorStep::Load
    }

    /// Decides about the next step after one that was open briefly or not at all.
    pub(super) fn decide(&mut self, stage: Stage, end: End) -> Decision {
        self.decide_after(&Attempt {
            stage,
            end,
            received: false,
            lasted: Duration::ZERO,
        })
    }

    /// Decides about the next step.
    pub(super) fn decide_after(&mut self, attempt: &Attempt) -> Decision {
        let was_verified = self.policy.is_verified();
        let decision = self.policy.ended(attempt, now(), fastrand::f64());
        if !self.policy.is_verified() {
            let now = time::Instant::now();
            // A server that calls a version expired is available, so what others have just asked it counts.
            self.last_failed = match attempt.end {
                End::Expired => self.last_failed.max(now.checked_sub(RECENT).unwrap_or(now)),
                _ => now,
            };
            if was_verified {
                self.remember_newest();
            }
        }
        self.log_ended(attempt.stage, attempt.end, decision.next, decision.delay);
        decision
    }

    /// Reports a failure and the delay after it.
    pub(super) fn failed(&mut self, error: &ReflectorError, delay: Duration) {
        self.progress.reconnects(error.reason());
        let kind = self.progress.gvk();
        if let Some(namespace) = &self.reading.namespace
            && self.reading.may_be_forbidden
            && error.is_forbidden()
        {
            self.progress.forbidden(namespace);
        }
        // The first expired version is usual, and has no delay.
        if delay.is_zero() {
            tracing::debug!(%kind, error = %describe(error), "the kind is listed again");
        } else {
            let trouble = Trouble {
                // A starting server answers like this for some seconds, which needs no warning.
                is_brief: self.policy.is_brief(),
                ..error.trouble()
            };
            self.progress.failed(&trouble, Some(delay));
        }
    }

    /// Waits after a failure, or until another reflector reaches the server.
    pub(super) async fn pause(&self, error: &ReflectorError, delay: Duration) {
        if error.is_unanswered() {
            // Others know whether the server is back. After an answer with an error they do not: it is about this kind.
            self.reading.server.wait_until_back(delay).await;
        } else {
            time::sleep(delay).await;
        }
    }

    /// Creates the request for a query.
    pub(super) fn request(&self, query: String, watch: bool) -> SourceRequest {
        SourceRequest {
            watch,
            namespace: self.reading.namespace.clone(),
            query,
            metadata_only: self.intake.content() == Content::MetadataOnly,
            gzip: self.reading.gzip && !watch,
        }
    }

    /// Sends a request, and waits for the head of the answer.
    pub(super) async fn open(
        &self,
        request: SourceRequest,
    ) -> Result<Response<SourceBody>, ReflectorError> {
        let verb = if request.watch { "watch" } else { "list" };
        // One timeout for the head of the answer and, if it is an error, for its body.
        let answer = async {
            let answer = self.source.get(&request).await;
            let response = answer.map_err(|source| ReflectorError::Unreachable { verb, source })?;
            if !response.status().is_success() {
                return Err(error::refused(verb, response).await);
            }
            // Lists may be compressed; watches are not asked for that.
            if request.watch && !matches!(page::encoding(response.headers()), Some("identity" | ""))
            {
                return Err(ReflectorError::malformed(verb, &page::UNEXPECTED_ENCODING));
            }
            Ok(response)
        };
        let after = ANSWER_TIMEOUT;
        let answer = time::timeout(after, answer)
            .await
            .unwrap_or(Err(ReflectorError::Unanswered { verb, after }));
        // An error is an answer too: the server is back, and the other reflectors need not wait any longer.
        let is_answered = !answer.as_ref().is_err_and(ReflectorError::is_unanswered);
        if is_answered && self.policy.is_away() {
            self.reading.server.answers();
        }
        answer
    }
}

fn now() -> Instant {
    time::Instant::now().into_std()
}
