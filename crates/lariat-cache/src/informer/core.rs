//! What all users of a kind share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey, ObjectMetadata, ResourceKind, ResourceVersion, Scope, Uid};
use lariat_flight::Recorder;
use tokio::sync::{Mutex, Notify, watch};
use tokio::time;

use crate::client::{KindClient, Sent};
use crate::content_filter::ContentFilter;
use crate::flight::KindFlight;
use crate::options::{KindOptions, MissingKind};
use crate::publish::{
    Budget, KindStatus, Meaning, Phase, Progress, Publisher, Share, SharedBudget, Usage,
};
use crate::reflector::{Intake, SharedServer, Source};
use crate::selection::Selection;
use crate::store::{Content, Storage, Store};
use crate::warm::{ClusterUid, WarmSource, WarmStore};

/// What all users of a kind share.
pub(crate) struct Core {
    pub(super) client: Arc<KindClient>,
    pub(super) store: Arc<Store>,
    pub(super) publisher: Arc<Publisher>,
    pub(super) progress: Arc<Progress>,
    pub(super) missing: MissingKind,
    pub(super) options: KindOptions,
    pub(super) source: Option<Arc<dyn Source>>,
    pub(super) wanted: watch::Sender<Wanted>,
    /// The form in which the kind has to be kept.
    pub(super) storage: watch::Sender<Storage>,
    pub(super) usage: Arc<Usage>,
    /// Where the store is kept between two runs.
    pub(super) warm: Option<WarmStore>,
    /// Where the objects of an earlier run are, if they are kept elsewhere.
    pub(super) warm_source: parking_lot::Mutex<Option<Arc<dyn WarmSource>>>,
    pub(super) cluster: ClusterUid,
    /// How often something else was selected, or all objects were given up.
    pub(super) generation: AtomicU64,
    /// What reflectors of other kinds find out about the API server.
    pub(super) server: SharedServer,
    pub(super) flight: Option<KindFlight>,
    /// Whether something was written before the first start, so that what an earlier run left is too old.
    pub(super) missed_answers: AtomicBool,
    /// The version at which the store was found there, and what it was read as.
    pub(super) resume: parking_lot::Mutex<Option<(ResourceVersion, Wanted, Content)>>,
    /// Held while the informer runs, so that a run that was stopped ends before the next begins.
    pub(super) run: Mutex<()>,
}

/// What users want to be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(super) selection: Selection,
    /// Whether anybody needs more than metadata.
    pub(super) content: bool,
}

/// What a factory gives its informers.
pub(crate) struct Surroundings {
    pub(crate) missing: MissingKind,
    pub(crate) budget: SharedBudget,
    pub(crate) warm: Option<WarmStore>,
    pub(crate) cluster: ClusterUid,
    pub(crate) filter: Option<ContentFilter>,
    pub(crate) server: SharedServer,
    pub(crate) flight: Option<Recorder>,
    /// Notified when a kind is not used any more.
    pub(crate) idle: Arc<Notify>,
}

impl Core {
    pub(crate) fn new(
        client: Arc<KindClient>,
        source: Option<Arc<dyn Source>>,
        options: KindOptions,
        surroundings: Surroundings,
    ) -> Self {
        let filter = surroundings.filter;
        let filter = filter.map(|filter| filter.of_kind(client.gvk()));
        let store = Arc::new(Store::filtered(filter));
        store.set_storage(options.storage);
        let storage = watch::Sender::new(options.storage);
        let share = Share::new(client.gvk().clone(), Arc::clone(&store), storage.clone());
        let budget = Budget::new(options.budget, surroundings.budget, share);
        let usage = Usage::new(surroundings.idle);
        let gvk = client.gvk();
        let flight = surroundings.flight;
        let flight = flight.map(|recorder| KindFlight::new(recorder, gvk));
        let publisher = Publisher::new(gvk.clone(), Arc::clone(&store), budget, flight.clone());
        Self {
            progress: Arc::new(Progress::new(client.gvk().clone(), Arc::clone(&usage))),
            publisher: Arc::new(publisher),
            store,
            client,
            missing: options.missing.unwrap_or(surroundings.missing),
            wanted: watch::Sender::new(Wanted {
                selection: options.selection.clone(),
                content: false,
            }),
            options,
            source,
            storage,
            usage,
            warm: surroundings.warm,
            warm_source: parking_lot::Mutex::default(),
            cluster: surroundings.cluster,
            generation: AtomicU64::new(0),
            server: surroundings.server,
            flight,
            missed_answers: AtomicBool::new(false),
            resume: parking_lot::Mutex::default(),
            run: Mutex::default(),
        }
    }

    pub(crate) fn gvk(&self) -> &Gvk {
        self.client.gvk()
    }

    /// Returns how long a start waits for the kind, if that was chosen for it.
    pub(crate) fn sync_timeout(&self) -> Option<Duration> {
        self.options.sync_timeout
    }

    pub(crate) fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }

    pub(crate) fn status(&self) -> KindStatus {
        self.progress.status(&self.store)
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(crate) fn objects(&self) -> usize {
        self.store.len()
    }

    /// Returns where the kind is served, if that is known.
    pub(crate) fn resource(&self) -> Option<ResourceKind> {
        self.client.known_resource()
    }

    /// Returns where the kind is served, or was served last.
    pub(crate) fn last_resource(&self) -> Option<ResourceKind> {
        self.client.last_resource()
    }

    /// Returns whether the cache is filled with all objects there are, in a namespace or in all.
    pub(crate) fn is_whole(&self, namespace: Option<&str>) -> bool {
        // What a source of the caller's leaves out is not known.
        if self.source.is_some() || self.progress.phase() != Phase::Synced {
            return false;
        }
        let is_cluster = |resource: &ResourceKind| resource.scope() == Scope::Cluster;
        let is_cluster = self.resource().as_ref().is_some_and(is_cluster);
        let selection = &self.wanted.borrow().selection;
        selection.selects_by_place_only() && (is_cluster || selection.covers(namespace))
    }

    /// Returns whether what is at a JSON pointer is cached as the API server has it.
    pub(crate) fn keeps(&self, pointer: &str) -> bool {
        let transform = self.options.transform.as_ref();
        self.source.is_none() && transform.is_none_or(|transform| transform.spares(pointer))
    }

    /// Waits until the cache has been filled; `false` if the kind is not served and not waited for.
    pub(crate) async fn synced(&self) -> bool {
        self.settled(|phase| *phase == Phase::Synced).await
    }

    /// Waits until the cache can be read: it is filled, or was when it was stopped.
    pub(crate) async fn readable(&self) -> bool {
        self.settled(|phase| self.is_readable(phase)).await
    }

    /// As [`readable`](Self::readable), until the patience that all readers share is over; `None` then.
    pub(crate) async fn readable_within(&self, patience: Duration) -> Option<bool> {
        if self.is_readable(&self.progress.phase()) {
            return Some(true);
        }
        let is_readable = || self.is_readable(&self.progress.phase());
        let since = self.progress.unreadable_since(is_readable);
        match since.checked_add(patience) {
            Some(deadline) => time::timeout_at(deadline, self.readable()).await.ok(),
            None => Some(self.readable().await),
        }
    }

    /// Returns whether the cache can be read: it is filled, or was when it was stopped. Handlers that finish what is
    /// due after that still read what they write; a start compares all of it with what there is.
    fn is_readable(&self, phase: &Phase) -> bool {
        match phase {
            Phase::Synced => true,
            Phase::Idle => self.progress.was_filled(),
            _ => false,
        }
    }

    /// Waits until a phase is good; `false` if the kind is not served and not waited for.
    async fn settled(&self, is_good: impl Fn(&Phase) -> bool) -> bool {
        let mut phases = self.progress.phases();
        let gives_up =
            |phase: &Phase| *phase == Phase::Missing && self.missing == MissingKind::Refuse;
        let settled = phases
            .wait_for(|phase| is_good(phase) || gives_up(phase))
            .await;
        settled.is_ok_and(|phase| *phase != Phase::Missing)
    }

    /// Notes that a run is about to begin: the cache counts as filled only when that run has filled it.
    pub(crate) fn begin(&self) {
        self.progress.start();
    }

    /// Takes in the answer to a write of this process, as far as it is certain what it means here.
    ///
    /// `sent` is what was known when the write was sent.
    ///
    /// An answer that is only metadata is left to the watch where the content of the object is cached.
    pub(crate) fn wrote(&self, answer: &[u8], of_answer: Content, gone: bool, sent: Sent) {
        if !self.takes_answers() {
            return;
        }
        let content = self.wanted_content();
        let Ok(object) = self.intake(content).read(answer) else {
            return;
        };
        if gone {
            let (key, uid) = (object.key(), object.uid());
            return self.publisher.deleted(key, uid, &sent);
        }
        let is_enough = |object: &ObjectMetadata| {
            of_answer == Content::Whole || !self.store.wants_content(content, object)
        };
        let meaning = |object: &ObjectMetadata| match self.meaning(object) {
            Meaning::Selected if !is_enough(object) => Meaning::Unknown,
            meaning => meaning,
        };
        // A filter may keep the content from now on, so what is only metadata is taken in as such.
        let content = match of_answer {
            Content::Whole => content,
            Content::MetadataOnly => Content::MetadataOnly,
        };
        self.publisher.wrote(object, content, sent, meaning);
    }

    /// Takes in that this process deleted an object; `sent` is as for [`wrote`](Self::wrote).
    pub(crate) fn deleted(&self, key: &ObjectKey, uid: &Uid, sent: &Sent) {
        if self.takes_answers() {
            self.publisher.deleted(key, uid, sent);
        }
    }

    /// Returns whether answers to writes are taken in, which is so from the first start on.
    ///
    /// A list in progress may be older than the answer, and the next begins when the API server is back: neither
    /// would do instead. What is written before the first start is in its list.
    fn takes_answers(&self) -> bool {
        let takes = self.progress.phase() != Phase::Idle || self.progress.was_filled();
        if !takes {
            self.missed_answers.store(true, Ordering::Relaxed);
        }
        takes
    }

    fn meaning(&self, object: &ObjectMetadata) -> Meaning {
        let selection = &self.wanted.borrow().selection;
        if !selection.may_hold(object) {
            Meaning::NotSelected
        } else if selection.surely_holds(object) {
            Meaning::Selected
        } else {
            // What fields decide is left to the watch.
            Meaning::Unknown
        }
    }

    /// Makes what reads objects as this kind keeps them.
    pub(super) fn intake(&self, content: Content) -> Intake {
        let options = &self.options;
        let transform = options.transform.clone();
        Intake::new(
            self.gvk().clone(),
            content,
            options.managed_fields,
            transform,
        )
    }
}
