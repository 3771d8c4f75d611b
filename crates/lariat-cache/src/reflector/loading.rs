//! The state of reading all objects.

use std::cmp::Ordering;
use std::time::Duration;

use lariat_core::{RawObject, ResourceVersion};
use lariat_flight::Reflected;
use tokio::time::Instant;

use super::error::ReflectorError;
use super::intake::Listed;
use super::page::Item;
use super::reflector::Reflector;
use super::span;
use crate::publish::Phase;
use crate::store::Listing;

/// How often the progress of a long list is logged.
const PROGRESS_PERIOD: Duration = Duration::from_secs(5);

/// A list in progress: in pages, or the initial part of a watch list.
#[derive(Debug)]
pub(super) struct Loading {
    pub(super) listing: Listing,
    /// Whether the cache is filled for the first time in this run, rather than updated.
    initial: bool,
    started: Instant,
    said: Instant,
    pub(super) loaded: usize,
    /// The number of the server's history when the list began.
    history: u64,
    /// Objects that were read and are not in the store yet.
    news: Vec<RawObject>,
}

impl Reflector {
    pub(super) fn begin_loading(&mut self) -> Loading {
        let initial = !self.progress.is_synced();
        if initial {
            let (loaded, total) = (0, None);
            self.progress.enter(Phase::Listing { loaded, total });
        }
        Loading {
            listing: self.begin_listing(initial),
            initial,
            started: Instant::now(),
            said: Instant::now(),
            loaded: 0,
            history: self.reading.server.found(),
            news: Vec::new(),
        }
    }

    fn begin_listing(&mut self, initial: bool) -> Listing {
        // Before anything is read, so that any later change of the filter, or request, leads to another list.
        self.reading.rereads.see();
        let namespace = self.reading.namespace.clone();
        let store = self.publisher.store();
        let listing = store.begin_listing(initial, self.intake.content(), namespace);
        if self.policy.is_verified() {
            listing
        } else {
            listing.comparing()
        }
    }

    /// Begins again: objects read so far may have been deleted since.
    pub(super) fn restart(&mut self, loading: &mut Loading) {
        loading.listing = self.begin_listing(loading.initial);
        loading.loaded = 0;
        loading.history = self.reading.server.found();
        loading.news.clear();
    }

    /// Notes the version of a list before its objects are read.
    ///
    /// A version before the reached one is from another history.
    pub(super) fn at_version(&mut self, loading: &mut Loading, version: &ResourceVersion) {
        if self.policy.is_verified() && self.went_back(version) {
            self.doubt();
            loading.listing = loading.listing.clone().comparing();
        }
    }

    /// Returns whether a version is before the reached one.
    pub(super) fn went_back(&self, version: &ResourceVersion) -> bool {
        version.compare(&self.reached) == Some(Ordering::Less)
    }

    /// Reads an object of the list.
    ///
    /// One that cannot be parsed is skipped if it has a name.
    pub(super) fn load(
        &mut self,
        loading: &mut Loading,
        item: Item<'_>,
    ) -> Result<(), ReflectorError> {
        let store = self.publisher.store();
        match self.intake.listed(item, store, &loading.listing) {
            Listed::Known => loading.loaded += 1,
            Listed::News(object) => {
                loading.loaded += 1;
                loading.news.push(object);
            }
            // The object exists, so its last readable state is better than none.
            Listed::Unreadable(Some(key), error) => {
                self.progress.unreadable(&format_args!("{key}: {error}"));
                store.list_unreadable(&loading.listing, &key);
            }
            Listed::Unreadable(None, error) => {
                let detail = error.to_string();
                return Err(ReflectorError::Malformed {
                    verb: "watch",
                    detail,
                });
            }
        }
        Ok(())
    }

    /// Publishes what was read so far; `remaining` objects follow, if that is known.
    pub(super) fn show(&self, loading: &mut Loading, remaining: Option<u64>) {
        let news = std::mem::take(&mut loading.news);
        self.publisher.list_page(&loading.listing, news);
        if !loading.initial {
            return;
        }
        let loaded = loading.loaded;
        let remaining = remaining.and_then(|count| usize::try_from(count).ok());
        let total = remaining.map(|count| loaded.saturating_add(count));
        self.progress.enter(Phase::Listing { loaded, total });
        if loading.said.elapsed() >= PROGRESS_PERIOD {
            let per_second = loaded as f64 / loading.started.elapsed().as_secs_f64();
            let per_second = per_second.round() as u64;
            tracing::info!(kind = %self.progress.gvk(), loaded, remaining, per_second, "filling the cache");
            loading.said = Instant::now();
        }
    }

    /// Ends a list of a version.
    pub(super) fn end_loading(&mut self, mut loading: Loading, version: &ResourceVersion) {
        let went_back = self.went_back(version);
        if went_back {
            self.reading.server.restored();
        }
        if !self.policy.is_verified() {
            self.reading.server.compared(loading.history, went_back);
            // The deletion may be from the previous history.
            self.last_ended = None;
        }
        self.reached = version.clone();
        self.policy.loaded();
        self.record(|_| Reflected::Loaded {
            version: version.into(),
            objects: u32::try_from(loading.loaded).unwrap_or(u32::MAX),
        });
        span::loaded(loading.loaded);
        self.show(&mut loading, None);
        self.publisher.end_listing(&loading.listing, version);
        // A listed object was created again, or is selected again.
        let store = self.publisher.store();
        self.last_ended
            .take_if(|ended| store.get(ended.key()).is_some());
        self.progress.reached(version);
        self.progress.loaded();
        if loading.initial {
            let elapsed = format!("{:.1?}", loading.started.elapsed());
            tracing::info!(kind = %self.progress.gvk(), objects = loading.loaded, %elapsed, "cache has synced");
        }
        self.progress.enter(Phase::Synced);
    }
}
