//! The reflector: lists a kind, then watches it, and keeps the store equal to what it was told.
//!
//! Every way in which a list or a watch can end leads to a next step and a delay: go on from the last
//! version where that makes sense, list again where it does not. Delays grow per kind, so one kind's
//! outage never slows another. The semantics are those of client-go's reflector.

mod backoff;
mod error;
mod event;
mod lines;
mod list;
mod page;
mod query;
mod source;
mod stream;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use lariat_core::{ResourceVersion, describe};
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::informer::{MISSING_KIND_PERIOD, Phase, Progress, Publisher};
use backoff::Backoff;

pub use error::ReflectorError;
pub(crate) use source::Endpoint;
pub use source::{Source, SourceBody, SourceError};

/// How long an answer may take to begin or, in a list, to go on. The API server itself gives a request
/// that is no watch a minute.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(65);

/// Keeps one kind's store up to date.
pub(crate) struct Reflector {
    source: Arc<dyn Source>,
    publisher: Arc<Publisher>,
    progress: Arc<Progress>,
    backoff: Backoff,
}

/// What the reflector does next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    List,
    Watch { since: ResourceVersion },
}

/// A step that failed, and what to do after a delay.
#[derive(Debug)]
struct Failure {
    error: ReflectorError,
    next: Step,
}

impl Reflector {
    pub(crate) fn new(
        source: Arc<dyn Source>,
        publisher: Arc<Publisher>,
        progress: Arc<Progress>,
    ) -> Self {
        Self {
            source,
            publisher,
            progress,
            backoff: Backoff::default(),
        }
    }

    /// Runs until it is told to stop.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut step = Step::List;
        while let Some(outcome) = stop.run_until_cancelled(self.take(step)).await {
            step = match outcome {
                Ok(next) => next,
                Err(Failure { error, next }) => {
                    let delay = if error.is_not_served() {
                        MISSING_KIND_PERIOD
                    } else {
                        self.backoff.fail(error.retry_after())
                    };
                    self.progress.failed(describe(&error), delay);
                    if error.is_not_served() {
                        self.progress.enter(Phase::Missing);
                    }
                    if stop.run_until_cancelled(time::sleep(delay)).await.is_none() {
                        return;
                    }
                    next
                }
            };
        }
    }

    async fn take(&mut self, step: Step) -> Result<Step, Failure> {
        match step {
            Step::List => match self.list().await {
                Ok(since) => Ok(Step::Watch { since }),
                Err(error) => Err(Failure {
                    error,
                    next: Step::List,
                }),
            },
            Step::Watch { since } => self.watch(since).await,
        }
    }

    /// Sends a request and waits for the beginning of its answer.
    async fn open(
        &self,
        verb: &'static str,
        query: &str,
    ) -> Result<Response<SourceBody>, ReflectorError> {
        let answer = async {
            let answer = self.source.get(query).await;
            let response = answer.map_err(|source| ReflectorError::Unreachable { verb, source })?;
            if response.status().is_success() {
                Ok(response)
            } else {
                Err(error::refused(verb, response).await)
            }
        };
        let after = ANSWER_TIMEOUT;
        match time::timeout(after, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(ReflectorError::Unanswered { verb, after }),
        }
    }
}
