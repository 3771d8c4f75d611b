//! Follows the kinds that an API server serves, and registers a handler for those that a predicate selects.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use lariat_cache::{Change, Informer, ServedKinds, SharedCacheFactory, Subscriber, Subscription};
use lariat_core::{Gvk, ResourceKind, describe};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use crate::controller::{Kinds, NewHandler, Registration, Slot};
use crate::error::RegisterError;

/// The delay between a change of CRDs or APIServices and discovery; lasso's.
const SETTLING: Duration = Duration::from_millis(500);

/// The interval of discovery while nothing seems to change.
const SURVEY_PERIOD: Duration = Duration::from_secs(300);

/// The interval of discovery after a failure.
///
/// It applies if the API server or one of its groups did not respond, and is doubled up to eight times the value.
const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// How long a kind that is no longer served keeps its handler while keys wait for it.
///
/// It also keeps it as long as objects are cached, unless its group serves another version.
const LINGERING: Duration = Duration::from_secs(60);

type Register = fn(&Arc<Slot>, NewHandler) -> Registration;

/// Selects kinds.
pub(super) type Wanted = dyn Fn(&ResourceKind) -> bool + Send + Sync;

/// The factory, as followers see it.
pub(crate) trait Follows: Kinds {
    /// Adds a handler of many kinds, and starts it if the factory runs.
    fn follow(&self, follower: &Arc<Follower>);

    /// Removes handlers of many kinds that have ended.
    fn forget_followers(&self);
}

/// Registers a handler for kinds that appear, and removes it from others.
pub(crate) struct Follower {
    factory: Weak<dyn Follows>,
    wanted: Arc<Wanted>,
    make: Box<dyn Fn() -> NewHandler + Send + Sync>,
    register: Register,
    until: Option<CancellationToken>,
    /// Locked while a kind is added, which may wait for a task that publishes a change.
    adding: Mutex<()>,
    /// Locked briefly: a subscriber of a cache may ask for the kinds in its call.
    kinds: Mutex<BTreeMap<Gvk, Followed>>,
    ended: CancellationToken,
}

/// A selected kind.
struct Followed {
    handler: Result<Registration, RegisterError>,
    slot: Arc<Slot>,
    resource: ResourceKind,
    /// Since when the kind is not served; none while it is.
    gone_since: Option<Instant>,
}

/// The watches of CRDs and APIServices.
struct Watch {
    changed: Arc<Notify>,
    crds: Vec<(Gvk, Subscription)>,
    /// The groups that did not respond to the last discovery.
    unavailable: Vec<String>,
}

impl Follower {
    pub(super) fn new(
        factory: Weak<dyn Follows>,
        wanted: Arc<Wanted>,
        make: Box<dyn Fn() -> NewHandler + Send + Sync>,
        register: Register,
    ) -> Self {
        let until = make().options.until;
        Self {
            until,
            factory,
            wanted,
            make,
            register,
            adding: Mutex::default(),
            kinds: Mutex::default(),
            ended: CancellationToken::new(),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Follows the kinds until `stop` is cancelled; registered handlers stay.
    pub(crate) async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.ended.cancelled() => {}
            () = self.cancelled() => drop(self.take_all()),
            () = self.follow() => {}
        }
    }

    /// Waits until the handler's token is cancelled.
    async fn cancelled(&self) {
        match &self.until {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    }

    async fn follow(&self) {
        let mut watch = Watch {
            changed: Arc::new(Notify::new()),
            crds: Vec::new(),
            unavailable: Vec::new(),
        };
        let mut retry = RETRY_PERIOD;
        loop {
            // `OnChange` stores a permit if a CRD changes during `look`, so that change is not missed.
            let changed = Arc::clone(&watch.changed);
            let pause = match self.look(&mut watch).await {
                Some(true) => {
                    retry = RETRY_PERIOD;
                    SURVEY_PERIOD
                }
                Some(false) => {
                    let pause = retry;
                    retry = (retry * 2).min(RETRY_PERIOD * 8);
                    pause
                }
                None => return,
            };
            tokio::select! {
                () = time::sleep(pause) => {}
                // The API server serves a new CRD a moment after the object has changed.
                () = changed.notified() => time::sleep(SETTLING).await,
            }
        }
    }

    /// Runs discovery, and adds and removes kinds accordingly.
    ///
    /// Returns whether all groups responded and no removed kind has objects left; none if the factory was dropped.
    async fn look(&self, watch: &mut Watch) -> Option<bool> {
        let caches = self.factory.upgrade()?.caches().clone();
        let served_kinds = match caches.clients().mapper().served_kinds().await {
            Ok(served_kinds) => served_kinds,
            Err(error) => {
                let error = describe(&error);
                tracing::warn!(error, "discovery failed, keeping the known kinds");
                return Some(false);
            }
        };
        watch.note_unavailable(&served_kinds);
        watch.crds(&served_kinds, &caches);
        let factory = self.factory.upgrade()?;
        // The predicate is the user's, so it is called before anything is locked.
        let kinds = served_kinds.kinds.iter();
        let wanted: Vec<&ResourceKind> = kinds.filter(|kind| self.wants(kind)).collect();
        for kind in &wanted {
            self.add(&factory, kind);
        }
        let (gone, lingers) = self.take_gone(&served_kinds, &wanted);
        // Running calls are not awaited: a handler that hangs must not keep us from following other kinds.
        gone.iter().for_each(Followed::remove);
        Some(!lingers && served_kinds.unavailable.is_empty())
    }

    /// Returns whether the predicate selects a kind. A kind about which it panics stays as it is.
    fn wants(&self, kind: &ResourceKind) -> bool {
        let asked = catch_unwind(AssertUnwindSafe(|| (self.wanted)(kind)));
        asked.unwrap_or_else(|_| {
            tracing::error!(kind = %kind.gvk(), "predicate of kinds panicked; the kind stays as it is");
            self.kinds.lock().contains_key(kind.gvk())
        })
    }

    /// Registers the handler for a kind, unless it is registered there.
    fn add(&self, factory: &Arc<dyn Follows>, kind: &ResourceKind) {
        // `take_all` cancels `ended`, and then takes the kinds under this lock. So either it takes the kind that is
        // added here, or nothing is added.
        let _adding = self.adding.lock();
        if self.has_ended() {
            return;
        }
        let known = match self.kinds.lock().get_mut(kind.gvk()) {
            Some(followed) => {
                followed.served_as(kind);
                if followed.handler.is_ok() {
                    return;
                }
                true
            }
            None => false,
        };
        let slot = Arc::clone(factory).slot(kind.gvk().clone());
        // The slot may have been created with an older resource than the one that discovery has returned.
        slot.replace_resource(kind);
        let alone = factory.registering();
        let new = (self.make)();
        let checked = slot.check(&new);
        let handler = checked.map(|()| (self.register)(&slot, new));
        drop(alone);
        // Tried again after each discovery, but logged once.
        if let (Err(error), false) = (&handler, known) {
            tracing::error!(%error, "handler of many kinds is not registered for this kind");
        }
        let followed = Followed {
            handler,
            slot,
            resource: kind.clone(),
            gone_since: None,
        };
        let before = self.kinds.lock().insert(kind.gvk().clone(), followed);
        // After unlocking, because it may hold the last handle of a slot.
        drop(before);
    }

    /// Removes and returns the kinds that are no longer served or selected.
    ///
    /// It also returns whether a kind is kept only because it has objects left.
    fn take_gone(
        &self,
        served_kinds: &ServedKinds,
        wanted: &[&ResourceKind],
    ) -> (Vec<Followed>, bool) {
        let now = Instant::now();
        let mut lingers = false;
        let mut kinds = self.kinds.lock();
        let gone = kinds.extract_if(.., |gvk, followed| {
            if served_kinds.kinds.iter().any(|kind| kind.gvk() == gvk) {
                return !wanted.iter().any(|kind| kind.gvk() == gvk);
            }
            // Nothing is known about the kinds of a group that did not respond.
            if served_kinds.is_unavailable(gvk) {
                return false;
            }
            // When a CRD is deleted, its objects are deleted too. The handler gets these deletions before it is
            // removed. As long as objects are cached, the kind may come back, and the next list then reports deletions
            // to the handler. If another version is served, it has a handler for the same objects.
            let since = *followed.gone_since.get_or_insert(now);
            let has_lingered = now - since >= LINGERING;
            let core = followed.slot.in_use();
            let has_objects = core.as_ref().is_some_and(|core| core.has_objects());
            let is_idle = core.is_none_or(|core| core.is_idle());
            let may_come_back = has_objects && !has_other_version(served_kinds, gvk);
            let is_over = is_idle || (has_lingered && !may_come_back);
            lingers |= !is_over && !has_lingered;
            is_over
        });
        let gone = gone.map(|(_, followed)| followed).collect();
        (gone, lingers)
    }

    /// Stops following, and deregisters the handler from every kind.
    pub(super) async fn end(&self) {
        let kinds = self.take_all().into_iter();
        let registrations = kinds.filter_map(|followed| followed.handler.ok());
        join_all(registrations.map(Registration::deregister)).await;
    }

    /// Stops following, and prevents further calls.
    fn take_all(&self) -> Vec<Followed> {
        self.ended.cancel();
        if let Some(factory) = self.factory.upgrade() {
            factory.forget_followers();
        }
        let _adding = self.adding.lock();
        let kinds = std::mem::take(&mut *self.kinds.lock());
        let kinds: Vec<Followed> = kinds.into_values().collect();
        kinds.iter().for_each(Followed::remove);
        kinds
    }

    pub(super) fn kinds(&self) -> Vec<Gvk> {
        let kinds = self.kinds.lock();
        let registered = kinds
            .iter()
            .filter(|(_, followed)| followed.handler.is_ok());
        registered.map(|(gvk, _)| gvk.clone()).collect()
    }

    pub(super) fn refused(&self) -> Vec<(Gvk, RegisterError)> {
        let kinds = self.kinds.lock();
        let refused = kinds.iter().filter_map(|(gvk, followed)| {
            Some((gvk.clone(), followed.handler.as_ref().err()?.clone()))
        });
        refused.collect()
    }
}

/// Returns whether a kind is served in another version.
fn has_other_version(served_kinds: &ServedKinds, gvk: &Gvk) -> bool {
    let mut kinds = served_kinds.kinds.iter().map(ResourceKind::gvk);
    kinds.any(|kind| kind.group() == gvk.group() && kind.kind() == gvk.kind())
}

impl Followed {
    /// Records that the kind is served, and under which resource name.
    fn served_as(&mut self, kind: &ResourceKind) {
        self.gone_since = None;
        if self.resource != *kind {
            tracing::info!(kind = %kind.gvk(), plural = kind.plural(), "kind is served under another resource name now");
            self.slot.replace_resource(kind);
            self.resource = kind.clone();
        }
    }

    /// Deregisters the handler without waiting for running calls.
    fn remove(&self) {
        if let Ok(registration) = &self.handler {
            registration.remove();
        }
    }
}

impl Watch {
    /// Logs which groups do not answer, when that has changed.
    fn note_unavailable(&mut self, served_kinds: &ServedKinds) {
        if served_kinds.unavailable != self.unavailable {
            self.unavailable.clone_from(&served_kinds.unavailable);
            let paths = served_kinds.unavailable.join(", ");
            if paths.is_empty() {
                tracing::info!("all API groups respond again")
            } else {
                tracing::warn!(paths, "API groups do not respond, keeping their kinds")
            }
        }
    }

    /// Watches CRDs and APIServices, if they are served.
    fn crds(&mut self, served_kinds: &ServedKinds, caches: &SharedCacheFactory) {
        let crds = [
            Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            Gvk::new("apiregistration.k8s.io", "v1", "APIService"),
        ];
        for gvk in crds {
            let known = self.crds.iter().any(|(known, _)| *known == gvk);
            let served = served_kinds.kinds.iter().find(|kind| *kind.gvk() == gvk);
            if let (false, Some(kind)) = (known, served) {
                let informer: Informer = caches.for_resource_kind(kind).optional();
                let on_change = Arc::new(OnChange(Arc::clone(&self.changed)));
                self.crds.push((gvk, informer.subscribe(on_change)));
            }
        }
    }
}

/// Notifies of every change of a CRD or an APIService.
struct OnChange(Arc<Notify>);

impl Subscriber for OnChange {
    fn changed(&self, _: &[Change]) {
        self.0.notify_one();
    }
}
