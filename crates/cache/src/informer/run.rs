//! The loop of an informer: resolves the kind and runs its reflectors in rounds.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::OptionFuture;
use lariat_core::{ResourceKind, Scope, describe};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::core::{Core, Wanted};
use crate::content_filter::{FilterChanges, KindFilter};
use crate::mapper::MapperError;
use crate::options::InitialList;
use crate::publish::{Phase, Trouble};
use crate::reflector::{
    Endpoint, Exit, NOT_SERVED, Reading, Reflector, Rereads, SharedServer, Source,
};
use crate::store::{Content, Storage};

/// How often discovery is repeated for a kind that is not served.
const MISSING_KIND_PERIOD: Duration = Duration::from_secs(2);

/// How often discovery is repeated for a kind that is served without `watch`.
const UNWATCHABLE_PERIOD: Duration = Duration::from_secs(60);

/// The first delay after a failed discovery; it doubles up to ten times this.
const DISCOVERY_PERIOD: Duration = Duration::from_secs(1);

/// Why a round of reading has ended.
enum Round {
    Stopped,
    /// Selection, content or storage changed.
    Changed,
    NotServed,
}

/// The source from which a kind is read, and whether its objects have namespaces.
struct Origin {
    source: Arc<dyn Source>,
    namespaced: bool,
}

impl Core {
    /// Begins a run, and returns the future that keeps the cache up to date until it is stopped.
    pub(crate) fn run(self: Arc<Self>, stop: CancellationToken) -> impl Future<Output = ()> + Send {
        // First: a relist that is accepted from the begin on is not lost.
        let relists = self.relists.subscribe();
        // Now, and not by the task: a caller that waits from now on must not find the synced phase of an earlier run.
        self.begin();
        self.run_alone(relists, stop)
    }

    async fn run_alone(self: Arc<Self>, relists: watch::Receiver<u64>, stop: CancellationToken) {
        // A run that was stopped may still be ending, and two runs must not write the store.
        let _alone = self.run.lock().await;
        // Again: the end of that run may have come after the begin of this one.
        self.begin();
        let (mut wanted, mut storage) = (self.wanted.subscribe(), self.storage.subscribe());
        stop.run_until_cancelled(self.warm_up()).await;
        while let Some(place) = self.place(&stop).await {
            let round = self.round(&place, &mut wanted, &mut storage, &relists, &stop);
            match round.await {
                Round::Stopped => break,
                Round::Changed => {}
                Round::NotServed => {
                    if stop.run_until_cancelled(self.unserved()).await.is_none() {
                        break;
                    }
                }
            }
        }
        self.keep_warm().await;
        self.progress.begin(0);
        self.progress.enter(Phase::Idle);
    }

    /// Reads until something must change, or the informer is stopped.
    async fn round(
        self: &Arc<Self>,
        place: &Origin,
        wanted: &mut watch::Receiver<Wanted>,
        storage: &mut watch::Receiver<Storage>,
        relists: &watch::Receiver<u64>,
        stop: &CancellationToken,
    ) -> Round {
        // Marked as seen before the reflectors start: a change from here on ends the round.
        let now = wanted.borrow_and_update().clone();
        let content = self.content(&now, *storage.borrow_and_update());
        self.publisher.restrict(&now.selection);
        let stop_reading = stop.child_token();
        let rereads = self.rereads(content, relists);
        let mut reflectors = self.spawn_reflectors(place, &now, content, &rereads, &stop_reading);
        let mut resync = self.resync_timer();
        let round = loop {
            tokio::select! {
                exit = reflectors.join_next() => match exit {
                    Some(Ok(Exit::NotServed)) => break Round::NotServed,
                    Some(Ok(Exit::Stopped)) => break Round::Stopped,
                    exit => {
                        let panic = exit.is_some_and(|exit| exit.is_err());
                        tracing::error!(kind = %self.gvk(), panic, "a reflector ended, it is restarted");
                        time::sleep(DISCOVERY_PERIOD).await;
                        break Round::Changed;
                    }
                },
                _ = wanted.changed() => break Round::Changed,
                // The budget also changes the form; only a change between content and metadata needs other requests.
                _ = storage.changed() => {
                    if self.content(&now, *storage.borrow_and_update()) != content {
                        break Round::Changed;
                    }
                }
                Some(()) = &mut resync => {
                    self.publisher.resync();
                    resync = self.resync_timer();
                }
            }
        };
        // All reflectors of the round have ended before the next round reads something else.
        stop_reading.cancel();
        while reflectors.join_next().await.is_some() {}
        // A list that was cut off must not keep own writes in memory.
        self.store.abandon_lists();
        if stop.is_cancelled() {
            Round::Stopped
        } else {
            round
        }
    }

    /// Returns whether objects are read with content or as metadata only.
    pub(super) fn wanted_content(&self) -> Content {
        let storage: Storage = *self.storage.borrow();
        self.content(&self.wanted.borrow(), storage)
    }

    fn content(&self, wanted: &Wanted, storage: Storage) -> Content {
        if wanted.content && storage != Storage::OnDemand {
            Content::Whole
        } else {
            Content::MetadataOnly
        }
    }

    fn spawn_reflectors(
        self: &Arc<Self>,
        place: &Origin,
        wanted: &Wanted,
        content: Content,
        rereads: &Rereads,
        stop: &CancellationToken,
    ) -> JoinSet<Exit> {
        let namespaces = match wanted.selection.namespaces() {
            [] => vec![None],
            _ if !place.namespaced => vec![None],
            some => some.iter().cloned().map(Some).collect(),
        };
        let mut reflectors = JoinSet::new();
        let segments = self.progress.begin(namespaces.len());
        let options = &self.options;
        // The objects of an earlier run are continued from only if this round reads the same, and no write was answered
        // meanwhile that they lack.
        let is_outdated = self.missed_answers.load(Ordering::Relaxed) || self.has_missed_write();
        let found =
            self.resume.lock().take().filter(|(_, was, as_content)| {
                was == wanted && *as_content == content && !is_outdated
            });
        let resume = found.map(|(version, ..)| version);
        // A source of the caller may be another server, whose outages and restores say nothing about this one.
        let server = match &self.source {
            Some(_) => SharedServer::default(),
            None => self.shared.server.of_kind(),
        };
        for (namespace, segment) in namespaces.into_iter().zip(segments) {
            let intake = self.intake(content);
            let reading = Reading {
                resume: resume.clone().filter(|_| namespace.is_none()),
                selection: wanted.selection.clone(),
                namespace,
                streams: options.initial_list == InitialList::WatchList,
                gzip: !options.uncompressed,
                list_limit: options.list_limit_in_bytes(),
                may_be_forbidden: options.may_be_forbidden,
                server: server.clone(),
                rereads: rereads.clone(),
            };
            let source = Arc::clone(&place.source);
            let publisher = Arc::clone(&self.publisher);
            let reflector = Reflector::new(source, publisher, segment, intake, reading);
            reflectors.spawn(reflector.run(stop.clone()));
        }
        reflectors
    }

    /// Returns the reasons for which a reflector lists again.
    ///
    /// The content filter is no reason if only metadata is read.
    fn rereads(&self, content: Content, relists: &watch::Receiver<u64>) -> Rereads {
        let filter = self.store.filter().filter(|_| content == Content::Whole);
        let changes = filter.map_or_else(FilterChanges::default, KindFilter::changes);
        Rereads::new(changes, relists.clone())
    }

    /// Returns the timer of the next resync; without a resync period it never fires.
    fn resync_timer(&self) -> OptionFuture<std::pin::Pin<Box<time::Sleep>>> {
        // Up to a tenth longer or shorter, so that kinds do not resync at the same time.
        let jittered = |period: Duration| period.mul_f64(0.9 + 0.2 * fastrand::f64());
        self.options
            .resync
            .map(|period| Box::pin(time::sleep(jittered(period))))
            .into()
    }

    /// Returns the source of the kind after discovery; `None` if the informer stops.
    async fn place(&self, stop: &CancellationToken) -> Option<Origin> {
        if stop.is_cancelled() {
            return None;
        }
        if let Some(source) = &self.source {
            let source = Arc::clone(source);
            let namespaced = true;
            return Some(Origin { source, namespaced });
        }
        let resource = self.resolve(stop).await?;
        Some(Origin {
            namespaced: resource.scope() == Scope::Namespaced,
            source: Arc::new(Endpoint::new(
                self.client.reading_client().clone(),
                &resource,
            )),
        })
    }

    /// Looks up the kind until it is served; `None` if the informer stops.
    async fn resolve(&self, stop: &CancellationToken) -> Option<ResourceKind> {
        let mut retry = DISCOVERY_PERIOD;
        let phase = self.progress.phase();
        // A synced cache that is read in another form stays synced.
        if phase != Phase::Synced && !phase.is_unserved() {
            self.progress.enter(Phase::Resolving);
        }
        loop {
            let error = match stop.run_until_cancelled(self.watchable()).await? {
                Ok(resource) => return Some(resource),
                Err(error) => error,
            };
            let delay = match &error {
                MapperError::NotWatchable { .. } => UNWATCHABLE_PERIOD,
                error if error.is_unknown() => MISSING_KIND_PERIOD,
                _ => retry,
            };
            retry = (retry * 2).min(10 * DISCOVERY_PERIOD);
            self.unresolved(&error, delay);
            stop.run_until_cancelled(time::sleep(delay)).await?;
        }
    }

    /// Returns the resource of the kind, if it can be listed and watched.
    async fn watchable(&self) -> Result<ResourceKind, MapperError> {
        let resource = self.client.resource().await?;
        let checked = self.client.check_watchable();
        if checked.is_err() {
            // So that the next attempt asks discovery again.
            self.client.forget_resource();
        }
        checked.map(|()| resource)
    }

    /// Records that the kind is not served, and waits until discovery is asked again.
    ///
    /// Its objects stay. That a version, a group or an API service answers 404 is no deletion: the objects may exist in
    /// another version, and the service may come back with them. The objects of a deleted CRD are deleted before, and
    /// the watch reports that. Whatever it has not reported is missing in the list that follows, once the kind is
    /// served again.
    async fn unserved(&self) {
        self.client.forget_resource();
        self.progress.unserved(Phase::Missing, Vec::new());
        // Discovery names the versions in which the kind is served.
        let error = match &self.source {
            Some(_) => None,
            None => self.client.resource().await.err(),
        };
        match error.filter(MapperError::is_unknown) {
            Some(error) => self.unresolved(&error, MISSING_KIND_PERIOD),
            // As where one of several API servers serves the kind, and another one does not.
            None => self.say_unserved(NOT_SERVED.to_owned(), MISSING_KIND_PERIOD),
        }
        time::sleep(MISSING_KIND_PERIOD).await;
    }

    /// Records that the kind has no resource that can be read.
    fn unresolved(&self, error: &MapperError, retry_in: Duration) {
        let phase = match error {
            MapperError::NotWatchable { .. } => Phase::Unwatchable,
            error if error.is_unknown() => Phase::Missing,
            error => {
                let trouble = Trouble {
                    summary: "the resource of the kind cannot be resolved",
                    error: describe(error),
                    is_brief: false,
                };
                return self.progress.failed(&trouble, Some(retry_in));
            }
        };
        // The reason first: a start that fails in this phase shows it.
        self.say_unserved(describe(error), retry_in);
        self.progress.unserved(phase, error.served_in_group());
    }

    fn say_unserved(&self, error: String, retry_in: Duration) {
        let trouble = Trouble {
            summary: if self.store.is_empty() {
                "the kind cannot be cached"
            } else {
                "the kind is not served any more; its cached objects stay as they are, and none counts as deleted"
            },
            error,
            is_brief: false,
        };
        self.progress.failed(&trouble, Some(retry_in));
    }
}
