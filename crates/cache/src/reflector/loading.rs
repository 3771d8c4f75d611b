//! Loading: reading all objects of a kind, in pages or by a watch list.

use std::cmp::Ordering;
use std::time::Duration;

use lariat_core::ResourceVersion;
use tokio::time::Instant;

use super::error::ReflectorError;
use super::intake::Listed;
use super::page::Item;
use super::position::Loading;
use super::reflector::Reflector;
use super::standstill::Standstill;
use crate::publish::Phase;
use crate::store::Listing;

/// How often the progress of a long list is logged.
const PROGRESS_PERIOD: Duration = Duration::from_secs(5);

impl Reflector {
    pub(super) fn begin_loading(&mut self) -> Loading {
        let initial = !self.progress.is_synced();
        // A relist keeps the phase: the cache stays synced and readable.
        if initial {
            let (loaded, total) = (0, None);
            self.progress.enter(Phase::Listing { loaded, total });
        }
        Loading {
            listing: self.begin_listing(initial),
            initial,
            started: Instant::now(),
            logged: Instant::now(),
            loaded: 0,
            history: self.reading.server.found(),
            pending: Vec::new(),
        }
    }

    fn begin_listing(&mut self, initial: bool) -> Listing {
        // Before anything is read, so that a later request, or change of the filter, leads to another list.
        self.reading.rereads.see();
        let namespace = self.reading.namespace.clone();
        let store = self.publisher.store();
        let listing = store.begin_listing(initial, self.intake.content(), namespace);
        // After a failure, versions may be from another history: an equal version is not enough.
        if self.policy.is_verified() {
            listing
        } else {
            listing.comparing()
        }
    }

    /// Begins the list again: objects read so far may have been deleted since.
    pub(super) fn restart(&mut self, loading: &mut Loading) {
        loading.listing = self.begin_listing(loading.initial);
        loading.loaded = 0;
        loading.history = self.reading.server.found();
        loading.pending.clear();
    }

    /// Records the version of a list before its objects are read.
    ///
    /// A version before the reached one is from another history, so contents are compared from here on.
    pub(super) fn at_version(&mut self, loading: &mut Loading, version: &ResourceVersion) {
        if self.policy.is_verified() && self.went_back(version) {
            self.policy.suspect();
            loading.listing = loading.listing.clone().comparing();
        }
    }

    /// Returns whether a version is before the reached one.
    pub(super) fn went_back(&self, version: &ResourceVersion) -> bool {
        version.compare(&self.reached) == Some(Ordering::Less)
    }

    /// Reads an object of the list.
    ///
    /// An object that cannot be parsed is skipped if its key can; otherwise this is an error of the request, which was
    /// a list or a watch.
    pub(super) fn load(
        &mut self,
        loading: &mut Loading,
        item: Item<'_>,
        verb: &'static str,
    ) -> Result<(), ReflectorError> {
        let store = self.publisher.store();
        match self.intake.listed(item, store, &loading.listing) {
            Listed::Known => loading.loaded += 1,
            Listed::Changed(object) => {
                loading.loaded += 1;
                loading.pending.push(object);
            }
            // The object exists: its last readable state stays, which is better than none.
            Listed::Unreadable(Some(key), error) => {
                self.progress.unreadable(&format_args!("{key}: {error}"));
                store.list_unreadable(&loading.listing, &key);
            }
            // The objects of the kind would be missing in the list, and count as deleted.
            Listed::OtherKind => return Err(ReflectorError::OtherKind { verb }),
            Listed::Unreadable(None, error) => {
                return Err(ReflectorError::malformed(verb, &error));
            }
        }
        Ok(())
    }

    /// Publishes what was read so far; `remaining` objects follow, if that is known.
    pub(super) fn publish_read(&self, loading: &mut Loading, remaining: Option<u64>) {
        let pending = std::mem::take(&mut loading.pending);
        self.publisher.list_page(&loading.listing, pending);
        // The progress of a relist is not shown, as the phase stays `Synced`.
        if !loading.initial {
            return;
        }
        let loaded = loading.loaded;
        let remaining = remaining.and_then(|count| usize::try_from(count).ok());
        let total = remaining.map(|count| loaded.saturating_add(count));
        self.progress.enter(Phase::Listing { loaded, total });
        if loading.logged.elapsed() >= PROGRESS_PERIOD {
            let per_second = loaded as f64 / loading.started.elapsed().as_secs_f64();
            let per_second = per_second.round() as u64;
            tracing::info!(kind = %self.progress.gvk(), loaded, remaining, per_second, "loading the cache");
            loading.logged = Instant::now();
        }
    }

    /// Ends a list at a version: what it did not contain is deleted.
    pub(super) fn end_loading(&mut self, mut loading: Loading, version: &ResourceVersion) {
        // Found by a list that did not expect it: the other reflectors must read the new history too.
        let went_back = self.went_back(version);
        if went_back {
            self.reading.server.restored();
        }
        // Contents were compared, so the store is of the history that was known when the list began, or of a later one.
        if !self.policy.is_verified() {
            self.reading.server.compared(loading.history, went_back);
        }
        // A watch from the version of the list cannot repeat what was before it.
        (self.last_event, self.is_forgotten) = (None, false);
        // It contains the writes that were answered before it, or they are of a former history.
        self.standstill = Standstill::default();
        self.reached = version.clone();
        self.reading.server.loaded(version);
        self.policy.loaded();
        self.log_loaded(loading.loaded, version);
        self.publish_read(&mut loading, None);
        self.publisher.end_listing(&loading.listing, version);
        self.progress.reached(version);
        self.progress.loaded(self.reading.server.read());
        if std::mem::take(&mut self.is_stale) {
            self.progress.recovered();
        }
        if loading.initial {
            let elapsed = format!("{:.1?}", loading.started.elapsed());
            tracing::info!(kind = %self.progress.gvk(), objects = loading.loaded, %elapsed, "cache has synced");
        }
        self.progress.enter(Phase::Synced);
    }
}
