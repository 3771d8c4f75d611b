//! Adapters for existing kube-rs code: a shared informer as a watcher or a feed of a store.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::{Stream, StreamExt, stream};
use kube::Resource;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher;

use crate::informer::{Changes, Informer};
use crate::store::{CachedObject, Change};
use crate::view::View;

/// The stage of an event stream.
enum Stage {
    /// Waits until the cache is filled.
    Begin(Informer),
    /// Sends the objects that existed at the time of subscribing.
    Initial(Informer, Changes, VecDeque<Change>),
    /// Sends changes as they come.
    Live(Informer, Changes),
}

impl Informer {
    /// Returns the events of kube-rs' [`watcher`](watcher()), from the shared watch.
    ///
    /// Once the cache has synced, the stream begins with `Init`, an `InitApply` for every object, and `InitDone`. Then
    /// it yields `Apply` and `Delete`. There is no second `Init`: after an interruption the stream yields the
    /// differences object by object, deletions included. An object that cannot be decoded yields an error, and the
    /// stream continues.
    ///
    /// ```no_run
    /// use futures::StreamExt;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube::runtime::WatchStreamExt;
    ///
    /// # async fn example(informer: lariat::cache::Informer) {
    /// let pods = informer.watcher_events::<Pod>().applied_objects();
    /// pods.for_each(async |pod| drop(pod)).await;
    /// # }
    /// ```
    pub fn watcher_events<K: View + Clone>(
        &self,
    ) -> impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + use<K> {
        self.need::<K>();
        stream::unfold(Stage::Begin(self.clone()), next).boxed()
    }

    /// Feeds a store of kube-rs from the shared watch, until the future is dropped.
    ///
    /// An object that cannot be decoded is logged and missing in the store.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube::runtime::reflector;
    ///
    /// # async fn example(informer: lariat::cache::Informer) {
    /// let (pods, writer) = reflector::store::<Pod>();
    /// let feeding = informer.feed(writer);
    /// # let _ = (pods, feeding); }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the updates; the store keeps its objects.
    pub async fn feed<K>(&self, mut writer: Writer<K>)
    where
        K: View + Clone + Resource,
        K::DynamicType: Debug + Eq + Hash + Clone,
    {
        let mut events = std::pin::pin!(self.watcher_events::<K>());
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => writer.apply_watcher_event(&event),
                Err(error) => {
                    tracing::warn!(kind = %self.gvk(), %error, "an object cannot be decoded and is missing in kube's store")
                }
            }
        }
    }

    fn event<K: View + Clone>(
        &self,
        object: &Arc<CachedObject>,
        event: fn(K) -> watcher::Event<K>,
    ) -> watcher::Result<watcher::Event<K>> {
        match self.store().read::<K>(object, self.gvk()) {
            Ok(value) => Ok(event(K::clone(&value))),
            Err(error) => Err(watcher::Error::WatchFailed(kube::Error::Service(
                error.into(),
            ))),
        }
    }
}

async fn next<K: View + Clone>(
    stage: Stage,
) -> Option<(watcher::Result<watcher::Event<K>>, Stage)> {
    match stage {
        Stage::Begin(informer) => {
            informer.filled::<K>().await;
            // The changes that are unread right after subscribing are the existing objects. kube's store swaps in what
            // comes before `InitDone` and forgets the rest, so later changes have to come after it.
            let mut changes = informer.changes();
            let initial = changes.take_all().into();
            Some((
                Ok(watcher::Event::Init),
                Stage::Initial(informer, changes, initial),
            ))
        }
        Stage::Initial(informer, changes, mut initial) => {
            let Some(change) = initial.pop_front() else {
                return Some((Ok(watcher::Event::InitDone), Stage::Live(informer, changes)));
            };
            let event = match &change {
                Change::Added { object, .. } => informer.event(object, watcher::Event::InitApply),
                // Not reached: all changes that were taken are additions.
                other => live(&informer, other),
            };
            Some((event, Stage::Initial(informer, changes, initial)))
        }
        Stage::Live(informer, mut changes) => {
            let change = changes.next().await;
            let event = live(&informer, &change);
            Some((event, Stage::Live(informer, changes)))
        }
    }
}

fn live<K: View + Clone>(
    informer: &Informer,
    change: &Change,
) -> watcher::Result<watcher::Event<K>> {
    match change {
        Change::Added { object, .. } | Change::Resynced { object } => {
            informer.event(object, watcher::Event::Apply)
        }
        Change::Updated { new, .. } => informer.event(new, watcher::Event::Apply),
        Change::Deleted { last } => informer.event(last, watcher::Event::Delete),
    }
}
