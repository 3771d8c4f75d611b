//! Going on from what an earlier run has kept.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::{StreamExt, TryStreamExt, stream};
use lariat_core::{RawObject, describe};

use super::Core;
use super::core::Wanted;
use crate::publish::Phase;
use crate::reflector::Intake;
use crate::store::Content;
use crate::warm::{Cold, WarmIdentity, WarmObjects, WarmSource};

impl Core {
    /// Fills the store with what an earlier run has kept, if there is such a thing.
    pub(super) async fn warm_up(&self) {
        let (wanted, content) = self.wanted_now();
        // What this run was shown or wrote is newer than what is there.
        if self.progress.was_filled() || self.missed_answers.load(Ordering::Relaxed) {
            return;
        }
        let Some(reading) = self.warm_reading(&wanted, content) else {
            return;
        };
        let kind = self.gvk();
        let source = self.warm_source.lock().take();
        if let Some(source) = source {
            match self.warm_objects(&*source, &wanted, content).await {
                Ok(Some(found)) => {
                    if self.take_in(found, &wanted, content).await {
                        return;
                    }
                }
                Ok(None) => {}
                Err(reason) => {
                    tracing::warn!(%kind, reason, "what an earlier run has kept cannot be read");
                }
            }
        }
        let Some(warm) = &self.warm else {
            return;
        };
        let found = match warm.find(kind, &reading).await {
            Ok(found) => found,
            Err(Cold::NoFile | Cold::NoKey) => return,
            Err(reason) => {
                let file = warm.file(kind);
                let file = file.display();
                if reason.is_fault() {
                    tracing::warn!(%kind, %file, %reason, "the cache starts empty");
                } else {
                    tracing::info!(%kind, %file, %reason, "the cache starts empty");
                }
                return;
            }
        };
        let found = WarmObjects {
            version: found.version,
            pages: stream::iter([Ok(found.objects)]).boxed(),
        };
        self.take_in(found, &wanted, content).await;
    }

    /// Asks a source for objects of what is wanted.
    async fn warm_objects(
        &self,
        source: &dyn WarmSource,
        wanted: &Wanted,
        content: Content,
    ) -> Result<Option<WarmObjects>, String> {
        // While the API server is away there is nothing to list, either.
        if content != Content::Whole || !self.cluster.wait().await {
            return Ok(None);
        }
        let Some(identity) = self.identity_of(wanted, content) else {
            return Ok(None);
        };
        let opened = source.open(identity).await;
        opened.map_err(|error| describe(&*error))
    }

    /// Fills the store with objects of an earlier run, as if they were a list; returns whether it did.
    async fn take_in(&self, mut found: WarmObjects, wanted: &Wanted, content: Content) -> bool {
        let kind = self.gvk();
        // They were changed before they were kept.
        let managed_fields = self.options.managed_fields;
        let mut intake = Intake::new(kind.clone(), content, managed_fields, None);
        let listing = self.store.begin_listing(true, content, None).of_the_past();
        let mut count = 0;
        loop {
            let page = found.pages.try_next().await;
            // Something else may be wanted since.
            if *self.wanted.borrow() != *wanted || self.wanted_content() != content {
                return false;
            }
            let objects = match page {
                Ok(None) => break,
                Ok(Some(page)) => {
                    let objects = page.iter().map(|json| intake.read(json));
                    let objects = objects.collect::<Result<Vec<RawObject>, _>>();
                    objects.map_err(|error| describe(&error))
                }
                Err(error) => Err(describe(&*error)),
            };
            match objects {
                Ok(objects) => {
                    count += objects.len();
                    self.publisher.list_page(&listing, objects);
                }
                // A list that is given up: the next one deletes what is gone.
                Err(reason) => {
                    tracing::warn!(%kind, reason, "what an earlier run has kept cannot be read: the kind is listed");
                    return false;
                }
            }
        }
        let version = found.version;
        self.publisher.end_listing(&listing, &version);
        tracing::info!(%kind, objects = count, %version, "the cache goes on where an earlier run ended");
        self.progress.found(&version);
        *self.resume.lock() = Some((version, wanted.clone(), content));
        true
    }

    /// Fills the cache at its first start from a source.
    pub(super) fn warm_from(&self, source: Arc<dyn WarmSource>) {
        *self.warm_source.lock() = Some(source);
    }

    /// Returns what must be the same for objects that are kept now to be used by a later run.
    pub(super) fn warm_identity(&self) -> Option<WarmIdentity> {
        // First, so that what is changed meanwhile makes another generation.
        let generation = self.generation.load(Ordering::SeqCst);
        let (wanted, content) = self.wanted_now();
        let text = self.identity_of(&wanted, content)?;
        Some(WarmIdentity { text, generation })
    }

    fn identity_of(&self, wanted: &Wanted, content: Content) -> Option<String> {
        let reading = self.warm_reading(wanted, content)?;
        // What is cached on demand may have no content.
        if content != Content::Whole {
            return None;
        }
        let cluster = self.cluster.known()?;
        Some(format!("{} {cluster} {reading}", crate::warm::FORMAT))
    }

    /// Returns what is wanted, and how much of each object that is. One look at a time: a second beside the first waits
    /// for whoever is about to change it, who waits for the first.
    fn wanted_now(&self) -> (Wanted, Content) {
        let wanted = self.wanted.borrow().clone();
        (wanted, self.wanted_content())
    }

    /// Leaves what is cached for the next run, if it is up to date.
    pub(super) async fn keep_warm(&self) {
        let Some(warm) = &self.warm else {
            return;
        };
        let filled = self.progress.phase() == Phase::Synced;
        let (wanted, content) = self.wanted_now();
        let reading = self.warm_reading(&wanted, content);
        let Some(reading) = reading.filter(|_| filled) else {
            return;
        };
        let Some(version) = self.progress.version() else {
            return;
        };
        let kind = self.gvk();
        if let Err(reason) = warm.leave(kind, &reading, &version, &self.store).await {
            let file = warm.file(kind);
            let file = file.display();
            tracing::warn!(%kind, %file, %reason, "nothing is left for the next start");
        }
    }

    /// Returns what has to be the same for what an earlier run has kept to be used; none if nothing can be used.
    fn warm_reading(&self, wanted: &Wanted, content: Content) -> Option<String> {
        let transform = self.options.transform.as_ref();
        let transparent = transform.is_none_or(|transform| transform.is_transparent());
        // Several namespaces are several versions, and a source of the user's is none of this cluster's.
        if !wanted.selection.namespaces().is_empty() || !transparent || self.source.is_some() {
            return None;
        }
        // The filter of the next run may keep the content of other objects.
        if content == Content::Whole && self.store.filter().is_some() {
            return None;
        }
        let managed = self.options.managed_fields;
        Some(format!(
            "{:?} {content:?} {managed:?} {transform:?}",
            wanted.selection
        ))
    }
}
