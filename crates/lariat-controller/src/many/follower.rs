//! Following which kinds an API server serves.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use lariat_cache::{Change, Informer, SharedCacheFactory, Subscriber, Subscription, Survey};
use lariat_core::{Gvk, ResourceKind, describe};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use crate::controller::{Kinds, NewHandler, Registration, Slot};
use crate::error::RegisterError;

/// How long after a change of CRDs the API server is asked: lasso's delay.
const SETTLING: Duration = Duration::from_millis(500);

/// How often the API server is asked although nothing seems to have changed.
const SURVEY_PERIOD: Duration = Duration::from_secs(300);

/// How often it is asked again if it did not answer, or not for all groups; doubling up to eight times as long.
const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// How long a kind that vanished may take until its objects are gone.
const LINGERING: Duration = Duration::from_secs(60);

type Register = fn(&Arc<Slot>, NewHandler) -> Registration;

/// Chooses kinds by how they are served.
pub(super) type Wanted = dyn Fn(&ResourceKind) -> bool + Send + Sync;

/// A factory that keeps handlers of many kinds, and follows the kinds while it runs.
pub(crate) trait Follows: Kinds {
    /// Keeps a handler of many kinds, and starts it if the factory runs.
    fn follow(&self, follower: &Arc<Follower>);

    /// Forgets handlers of many kinds that have ended.
    fn forget_followers(&self);
}

/// Registers a handler for kinds that come, and takes it away from those that go.
pub(crate) struct Follower {
    factory: Weak<dyn Follows>,
    wanted: Arc<Wanted>,
    make: Box<dyn Fn() -> NewHandler + Send + Sync>,
    register: Register,
    until: Option<CancellationToken>,
    kinds: Mutex<BTreeMap<Gvk, Followed>>,
    ended: CancellationToken,
}

/// A kind that is wanted.
struct Followed {
    handler: Result<Registration, RegisterError>,
    slot: Arc<Slot>,
    resource: ResourceKind,
    /// Since when it is not served.
    gone_since: Option<Instant>,
}

/// Notified when CustomResourceDefinitions change.
struct Watch {
    changed: Arc<Notify>,
    crds: Vec<(Gvk, Subscription)>,
    /// The groups that did not answer at the last look.
    unanswered: Vec<String>,
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
            kinds: Mutex::default(),
            ended: CancellationToken::new(),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Follows until it is stopped; what is registered stays so.
    pub(crate) async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.ended.cancelled() => {}
            () = self.is_over() => drop(self.take_all()),
            () = self.follow() => {}
        }
    }

    /// Waits until the scope of the handler ends.
    async fn is_over(&self) {
        match &self.until {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    }

    async fn follow(&self) {
        let mut watch = Watch {
            changed: Arc::new(Notify::new()),
            crds: Vec::new(),
            unanswered: Vec::new(),
        };
        let mut retry = RETRY_PERIOD;
        loop {
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
                () = changed.notified() => time::sleep(SETTLING).await,
            }
        }
    }

    /// Asks what is served, and acts accordingly; returns whether everything was answered and settled, or none
    /// without a factory.
    async fn look(&self, watch: &mut Watch) -> Option<bool> {
        let caches = self.factory.upgrade()?.caches().clone();
        let survey = match caches.clients().mapper().survey().await {
            Ok(survey) => survey,
            Err(error) => {
                let error = describe(&error);
                tracing::warn!(
                    error,
                    "cannot find out which kinds there are; those that are known go on"
                );
                return Some(false);
            }
        };
        watch.note_unanswered(&survey);
        watch.crds(&survey, &caches);
        let factory = self.factory.upgrade()?;
        // Asked before anything is locked: it is the user's.
        let kinds = survey.kinds.iter();
        let wanted: Vec<&ResourceKind> = kinds.filter(|kind| (self.wanted)(kind)).collect();
        for kind in &wanted {
            self.add(&factory, kind);
        }
        let (gone, lingers) = self.take_gone(&survey, &wanted);
        // A call that hangs must not keep us from following other kinds.
        gone.iter().for_each(Followed::remove);
        Some(!lingers && survey.unanswered.is_empty())
    }

    fn add(&self, factory: &Arc<dyn Follows>, kind: &ResourceKind) {
        let mut kinds = self.kinds.lock();
        // Looked at under the lock, so that nothing is added behind the back of whoever ends this.
        if self.has_ended() {
            return;
        }
        if let Some(followed) = kinds.get_mut(kind.gvk()) {
            followed.gone_since = None;
            if followed.resource != *kind {
                tracing::info!(kind = %kind.gvk(), plural = kind.plural(), "it is served elsewhere now");
                followed.slot.replace_resource(kind);
                followed.resource = kind.clone();
            }
            if followed.handler.is_ok() {
                return;
            }
        }
        let known = kinds.contains_key(kind.gvk());
        let slot = Arc::clone(factory).slot(kind.gvk().clone());
        // As it is served by now, whatever it was when somebody asked for it.
        slot.replace_resource(kind);
        let alone = factory.registering();
        let new = (self.make)();
        let checked = slot.check(&new);
        let handler = checked.map(|()| (self.register)(&slot, new));
        drop(alone);
        // Logged once; it is tried again with each look.
        if let (Err(error), false) = (&handler, known) {
            tracing::error!(%error, "a kind is left out");
        }
        let followed = Followed {
            handler,
            slot,
            resource: kind.clone(),
            gone_since: None,
        };
        kinds.insert(kind.gvk().clone(), followed);
    }

    /// Takes out kinds that are gone or not wanted any more; returns whether objects of a kind that is gone linger.
    fn take_gone(&self, survey: &Survey, wanted: &[&ResourceKind]) -> (Vec<Followed>, bool) {
        let now = Instant::now();
        let mut lingers = false;
        let mut kinds = self.kinds.lock();
        let gone = kinds.extract_if(.., |gvk, followed| {
            if survey.kinds.iter().any(|kind| kind.gvk() == gvk) {
                return !wanted.iter().any(|kind| kind.gvk() == gvk);
            }
            if survey.is_unanswered(gvk) {
                return false;
            }
            let since = *followed.gone_since.get_or_insert(now);
            let core = followed.slot.in_use();
            let is_empty = core.is_none_or(|core| core.is_idle());
            let is_over = is_empty || now - since >= LINGERING;
            lingers |= !is_over;
            is_over
        });
        let gone = gone.map(|(_, followed)| followed).collect();
        (gone, lingers)
    }

    /// Ends following, and takes the handler from every kind.
    pub(super) async fn end(&self) {
        let kinds = self.take_all().into_iter();
        let registrations = kinds.filter_map(|followed| followed.handler.ok());
        join_all(registrations.map(Registration::deregister)).await;
    }

    /// Ends following, and lets no further call begin.
    fn take_all(&self) -> Vec<Followed> {
        self.ended.cancel();
        if let Some(factory) = self.factory.upgrade() {
            factory.forget_followers();
        }
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

impl Followed {
    /// Takes the handler away; calls under way are not waited for.
    fn remove(&self) {
        if let Ok(registration) = &self.handler {
            registration.remove();
        }
    }
}

impl Watch {
    /// Warns of groups that do not answer, when that has changed.
    fn note_unanswered(&mut self, survey: &Survey) {
        if survey.unanswered != self.unanswered {
            self.unanswered.clone_from(&survey.unanswered);
            let paths = survey.unanswered.join(", ");
            if paths.is_empty() {
                tracing::info!("all groups answer again")
            } else {
                tracing::warn!(paths, "groups do not answer; their kinds stay as they are")
            }
        }
    }

    /// Watches what defines kinds, if it is served.
    fn crds(&mut self, survey: &Survey, caches: &SharedCacheFactory) {
        let crds = [
            Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            Gvk::new("apiregistration.k8s.io", "v1", "APIService"),
        ];
        for gvk in crds {
            let known = self.crds.iter().any(|(known, _)| *known == gvk);
            let served = survey.kinds.iter().find(|kind| *kind.gvk() == gvk);
            if let (false, Some(kind)) = (known, served) {
                let informer: Informer = caches.for_resource_kind(kind).optional();
                let on_change = Arc::new(OnChange(Arc::clone(&self.changed)));
                self.crds.push((gvk, informer.subscribe(on_change)));
            }
        }
    }
}

struct OnChange(Arc<Notify>);

impl Subscriber for OnChange {
    fn changed(&self, _: &[Change]) {
        self.0.notify_one();
    }
}
