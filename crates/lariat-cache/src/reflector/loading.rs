//! What is going on while everything there is is read.

use std::cmp::Ordering;
use std::time::Duration;

use lariat_core::{RawObject, ResourceVersion};
use lariat_flight::Reflected;
use tokio::time::Instant;

use super::error::ReflectorError;
use super::intake::Listed;
use super::page::Item;
use super::reflector::Reflector;
use crate::publish::Phase;
use crate::store::Listing;

/// How often a long list says how far it is.
const PROGRESS_PERIOD: Duration = Duration::from_secs(5);

/// A list in progress, in pages or as the beginning of a watch.
#[derive(Debug)]
pub(super) struct Loading {
    pub(super) listing: Listing,
    /// Whether the cache is being filled, rather than brought up to date.
    initial: bool,
    started: Instant,
    said: Instant,
    pub(super) loaded: usize,
    /// The number of the last history that was found when the list began.
    history: u64,
    /// What was read and is not in the store yet.
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
        // Before anything is read: a change from now on leads to another list.
        self.reading.filter.see();
        let namespace = self.reading.namespace.clone();
        let store = self.publisher.store();
        let listing = store.begin_listing(initial, self.intake.content(), namespace);
        if self.policy.is_verified() {
            listing
        } else {
            listing.comparing()
        }
    }

    /// Begins again: what was mentioned so far may be gone by now.
    pub(super) fn restart(&mut self, loading: &mut Loading) {
        loading.listing = self.begin_listing(loading.initial);
        loading.loaded = 0;
        loading.history = self.reading.server.found();
        loading.news.clear();
    }

    /// Notes the version of a list before its objects are read: one before what was reached is of another history.
    pub(super) fn at_version(&mut self, loading: &mut Loading, version: &ResourceVersion) {
        if self.policy.is_verified() && self.went_back(version) {
            self.doubt();
            loading.listing = loading.listing.clone().comparing();
        }
    }

    /// Returns whether a version is before what was reached.
    pub(super) fn went_back(&self, version: &ResourceVersion) -> bool {
        version.compare(&self.reached) == Some(Ordering::Less)
    }

    /// Reads an object of the list; one that cannot be read is passed over if it has a name.
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
            // It is there, so its last readable state is better than none.
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

    /// Shows what was read so far; `remaining` objects are to come, if that is known.
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
            tracing::info!(kind = %self.progress.gvk(), loaded, total, "filling the cache");
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
            // It may be from a history that is over.
            self.last_ended = None;
        }
        self.reached = version.clone();
        self.policy.loaded();
        self.record(|_| Reflected::Loaded {
            version: version.into(),
            objects: u32::try_from(loading.loaded).unwrap_or(u32::MAX),
        });
        self.show(&mut loading, None);
        self.publisher.end_listing(&loading.listing, version);
        // What the list shows again was made anew, or is in the selection again.
        let store = self.publisher.store();
        self.last_ended
            .take_if(|ended| store.get(ended.key()).is_some());
        self.progress.reached(version);
        self.progress.loaded();
        if loading.initial {
            let elapsed = loading.started.elapsed();
            tracing::info!(kind = %self.progress.gvk(), objects = loading.loaded, ?elapsed, "cache is filled");
        }
        self.progress.enter(Phase::Synced);
    }
}
