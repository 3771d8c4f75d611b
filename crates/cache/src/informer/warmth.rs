//! Warm restarts: starting from the saved objects of an earlier run, and saving them.

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
    /// Loads the saved objects of an earlier run, at the first start of the kind.
    pub(super) async fn warm_up(&self) {
        let (wanted, content) = self.wanted_now();
        // Afterwards the store may have newer objects, also of a list that did not end.
        let was_started = self.is_warmed.swap(true, Ordering::Relaxed);
        // An object that was written before is newer than anything saved.
        if was_started || self.missed_answers.load(Ordering::Relaxed) {
            return;
        }
        let Some(reading) = self.warm_reading(&wanted, content) else {
            return;
        };
        let kind = self.gvk();
        let source = self.warm_source.lock().take();
        if let Some(source) = source {
            match self.warm_objects(&*source, &wanted, content).await {
                // Unless all of it is read the kind is listed, like a file of which a part is read.
                Ok(Some(found)) => {
                    self.take_in(found, &wanted, content).await;
                    return;
                }
                Ok(None) => {}
                Err(reason) => {
                    tracing::warn!(%kind, reason, "the saved objects of an earlier run cannot be read");
                }
            }
        }
        let Some(warm) = &self.shared.warm else {
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

    /// Asks a source for objects that were read as this run reads them.
    async fn warm_objects(
        &self,
        source: &dyn WarmSource,
        wanted: &Wanted,
        content: Content,
    ) -> Result<Option<WarmObjects>, String> {
        // If the API server cannot even identify its cluster, saved objects cannot be matched to it.
        if content != Content::Whole || !self.shared.cluster.wait().await {
            return Ok(None);
        }
        let Some(identity) = self.identity_of(wanted, content) else {
            return Ok(None);
        };
        let opened = source.open(identity).await;
        opened.map_err(|error| describe(&*error))
    }

    /// Loads objects of an earlier run as a list, which may stay incomplete.
    async fn take_in(&self, mut found: WarmObjects, wanted: &Wanted, content: Content) {
        let kind = self.gvk();
        // Without the transform: they were transformed before they were saved.
        let managed_fields = self.options.managed_fields;
        let mut intake = Intake::new(kind.clone(), content, managed_fields, None);
        let listing = self.store.begin_listing(true, content, None).of_the_past();
        let mut count = 0;
        loop {
            let page = found.pages.try_next().await;
            // Selection or content may have changed since the previous page.
            if *self.wanted.borrow() != *wanted || self.wanted_content() != content {
                return;
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
                // The list is abandoned; the next one removes objects that do not exist any more.
                Err(reason) => {
                    tracing::warn!(%kind, reason, "the saved objects of an earlier run cannot be read; the kind is listed");
                    return;
                }
            }
        }
        let version = found.version;
        self.publisher.end_listing(&listing, &version);
        tracing::info!(%kind, objects = count, %version, "the cache continues where an earlier run ended");
        self.progress.found(&version);
        *self.resume.lock() = Some((version, wanted.clone(), content));
    }

    /// Sets the source from which the cache is loaded at its first start.
    pub(super) fn warm_from(&self, source: Arc<dyn WarmSource>) {
        *self.warm_source.lock() = Some(source);
    }

    /// Returns the identity under which a later run may use objects saved now.
    pub(super) fn warm_identity(&self) -> Option<WarmIdentity> {
        if self.is_of_former_history() {
            return None;
        }
        // Read first: a change after this leads to another generation, and the identity is not used.
        let generation = self.generation.load(Ordering::SeqCst);
        let (wanted, content) = self.wanted_now();
        let text = self.identity_of(&wanted, content)?;
        Some(WarmIdentity { text, generation })
    }

    fn identity_of(&self, wanted: &Wanted, content: Content) -> Option<String> {
        let reading = self.warm_reading(wanted, content)?;
        // A cache without content lacks what the next run may need.
        if content != Content::Whole {
            return None;
        }
        let cluster = self.shared.cluster.known()?;
        Some(format!("{} {cluster} {reading}", crate::warm::FORMAT))
    }

    /// Returns the selection that is read, and its content.
    ///
    /// The two borrows come one after the other: a second borrow within the first would deadlock with a writer that
    /// waits between them.
    fn wanted_now(&self) -> (Wanted, Content) {
        let wanted = self.wanted.borrow().clone();
        (wanted, self.wanted_content())
    }

    /// Returns whether the server was restored since all objects were read.
    ///
    /// It returns false for a source of the caller, which is never saved.
    fn is_of_former_history(&self) -> bool {
        self.source.is_none() && self.shared.server.found() > self.progress.history()
    }

    /// Saves the cache for the next run, if it is up to date.
    pub(super) async fn keep_warm(&self) {
        let Some(warm) = &self.shared.warm else {
            return;
        };
        let kind = self.gvk();
        if self.is_of_former_history() {
            tracing::info!(%kind, "the API server was restored, so the cache is not saved for the next start");
            // Nor is an older file of use.
            return warm.forget(kind).await;
        }
        // Read first: a change after this shows in the progress.
        let (wanted, content) = self.wanted_now();
        // Objects whose content is still being read would be saved without it, and an object whose deletion is in doubt
        // would be missing.
        let filled =
            self.progress.phase() == Phase::Synced && !self.is_upgrading() && !self.store.hides();
        let reading = self.warm_reading(&wanted, content);
        let Some(reading) = reading.filter(|_| filled) else {
            return;
        };
        let Some(version) = self.progress.resume() else {
            return;
        };
        if let Err(reason) = warm.leave(kind, &reading, &version, &self.store).await {
            let file = warm.file(kind);
            tracing::warn!(%kind, file = %file.display(), %reason, "the cache cannot be saved for the next start");
        }
    }

    /// Describes what must be the same for saved objects to be used.
    ///
    /// `None` if they cannot be used.
    fn warm_reading(&self, wanted: &Wanted, content: Content) -> Option<String> {
        let transform = self.options.transform.as_ref();
        let transparent = transform.is_none_or(|transform| transform.is_transparent());
        // Several namespaces have several versions, and objects of the caller's source are not those of this cluster.
        if !wanted.selection.namespaces().is_empty() || !transparent || self.source.is_some() {
            return None;
        }
        // The next run's filter may keep the content of other objects.
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
