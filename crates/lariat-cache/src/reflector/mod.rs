//! The reflector: lists a kind, then watches it, and keeps the store equal to what it was told.
//!
//! Every way in which a list or a watch can end leads to a next step and a delay: go on from the last
//! version where that makes sense, list again where it does not. Delays grow per kind, so one kind's
//! outage never slows another. The semantics are those of client-go's reflector.

mod backoff;
mod error;
mod event;
mod lines;
mod page;
mod query;
mod source;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;
use lariat_core::{ResourceVersion, describe};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use crate::informer::{Phase, Progress, Publisher};
use crate::store::{Delta, Listing};
use backoff::Backoff;
use event::WatchEvent;
use page::Page;
use stream::WatchStream;

pub use error::ReflectorError;
pub(crate) use source::Endpoint;
pub use source::{Source, SourceBody, SourceError};

/// How long a watch is asked to last, at least; up to as much again is added at random.
const WATCH_TIMEOUT: Duration = Duration::from_secs(300);

/// A watch that ends sooner than this and told nothing has failed.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);

/// How long to wait after a watch that told something but was that short.
const REOPEN_PAUSE: Duration = Duration::from_millis(100);

/// How many watches in a row may fail before a new list is tried instead.
const WATCH_ATTEMPTS: u32 = 5;

/// How often a long list says how far it is.
const PROGRESS_PERIOD: Duration = Duration::from_secs(5);

/// Keeps one kind's store up to date.
pub(crate) struct Reflector {
    source: Arc<dyn Source>,
    publisher: Arc<Publisher>,
    progress: Arc<Progress>,
    backoff: Backoff,
    lists: u32,
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
            lists: 0,
        }
    }

    /// Runs until it is told to stop.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut step = Step::List;
        while let Some(outcome) = stop.run_until_cancelled(self.take(step)).await {
            step = match outcome {
                Ok(next) => next,
                Err(Failure { error, next }) => {
                    let delay = self.backoff.fail(error.retry_after());
                    self.progress.failed(describe(&error), delay);
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

    /// Reads the whole kind and returns the version of the list.
    async fn list(&mut self) -> Result<ResourceVersion, ReflectorError> {
        let initial = self.progress.phase() != Phase::Synced;
        let started = Instant::now();
        let mut listing = self.begin_listing(initial);
        let version = match self.list_pages(listing, initial).await {
            // The list took longer than its token lives: everything at once cannot expire. It is
            // another list, for what the first pages showed may be gone.
            Err(error) if error.is_expired() => {
                listing = self.begin_listing(initial);
                self.list_whole(listing, initial).await?
            }
            other => other?,
        };
        self.publisher.end_listing(listing);
        if initial {
            let objects = self.publisher.store().len();
            let kind = self.progress.gvk();
            tracing::info!(%kind, objects, elapsed = ?started.elapsed(), "cache is filled");
            self.progress.enter(Phase::Synced);
        }
        Ok(version)
    }

    fn begin_listing(&mut self, initial: bool) -> Listing {
        let listing = Listing::after(self.lists, initial);
        self.lists = self.lists.wrapping_add(1);
        self.progress.list_begun();
        listing
    }

    async fn list_pages(
        &self,
        listing: Listing,
        initial: bool,
    ) -> Result<ResourceVersion, ReflectorError> {
        let mut loaded = 0;
        let mut said = Instant::now();
        let mut first_version = None;
        let mut token: Option<String> = None;
        loop {
            let page = self.page(&query::page(token.as_deref())).await?;
            loaded += page.objects.len();
            if initial {
                let total = page.remaining.map(|remaining| loaded + remaining as usize);
                self.progress.enter(Phase::Listing { loaded, total });
                if said.elapsed() >= PROGRESS_PERIOD {
                    tracing::info!(kind = %self.progress.gvk(), loaded, total, "filling the cache");
                    said = Instant::now();
                }
            }
            token.clone_from(&page.continue_token);
            // What changes while later pages are read is told by a watch from the first page on.
            let version = first_version.get_or_insert(page.version.clone()).clone();
            self.take_in(listing, page);
            if token.is_none() {
                return Ok(version);
            }
        }
    }

    async fn list_whole(
        &self,
        listing: Listing,
        initial: bool,
    ) -> Result<ResourceVersion, ReflectorError> {
        let page = self.page(query::whole()).await?;
        let (version, loaded) = (page.version.clone(), page.objects.len());
        if initial {
            let total = Some(loaded);
            self.progress.enter(Phase::Listing { loaded, total });
        }
        self.take_in(listing, page);
        Ok(version)
    }

    fn take_in(&self, listing: Listing, page: Page) {
        for error in &page.unreadable {
            self.progress.unreadable(error);
        }
        self.publisher.list_page(listing, page.objects);
    }

    async fn page(&self, query: &str) -> Result<Page, ReflectorError> {
        let body = self.open("list", query).await?.into_body();
        let cut = |source| ReflectorError::Cut {
            verb: "list",
            source,
        };
        let json: Bytes = body.collect().await.map_err(cut)?.to_bytes();
        Page::parse(&json, self.progress.gvk())
    }

    async fn open(
        &self,
        verb: &'static str,
        query: &str,
    ) -> Result<Response<SourceBody>, ReflectorError> {
        let response = self
            .source
            .get(query)
            .await
            .map_err(|source| ReflectorError::Unreachable { verb, source })?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(error::refused(verb, response).await)
        }
    }

    /// Watches from a version on, until the watch ends.
    async fn watch(&mut self, since: ResourceVersion) -> Result<Step, Failure> {
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
        if cursor.told {
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
                Ok(WatchEvent::Bookmark(version)) => {
                    stream.bookmarked();
                    cursor.move_to(version);
                }
                Ok(WatchEvent::Error(error)) => {
                    outcome = Err(error);
                    break;
                }
                Err(error) => self.progress.unreadable(&error),
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
