//! Going on from what an earlier run left on disk.

use std::sync::atomic::Ordering;

use lariat_core::RawObject;

use super::Core;
use super::core::Wanted;
use super::status::Phase;
use crate::reflector::Intake;
use crate::store::Content;
use crate::warm::{Cold, WarmStore};

impl Core {
    /// Fills the store with what an earlier run left, if there is such a thing.
    pub(super) async fn warm_up(&self) {
        let (wanted, content) = self.wanted_now();
        let Some((warm, reading)) = self.warm_reading(&wanted, content) else {
            return;
        };
        // What this run was shown or wrote is newer than what is there.
        if self.progress.was_filled() || self.missed_answers.load(Ordering::Relaxed) {
            return;
        }
        let kind = self.gvk();
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
        // Somebody may have wanted something else meanwhile.
        if *self.wanted.borrow() != wanted || self.wanted_content() != content {
            return;
        }
        // They were changed before they were kept.
        let managed_fields = self.options.managed_fields;
        let mut intake = Intake::new(kind.clone(), content, managed_fields, None);
        let objects = found.objects.iter().map(|json| intake.read(json));
        let Ok(objects) = objects.collect::<Result<Vec<RawObject>, _>>() else {
            let file = warm.file(kind);
            let file = file.display();
            let reason = "an object in it is not understood";
            tracing::warn!(%kind, %file, reason, "the cache starts empty");
            return;
        };
        let (count, version) = (objects.len(), found.version);
        let listing = self.store.begin_listing(true, content, None).of_the_past();
        self.publisher.list_page(&listing, objects);
        self.publisher.end_listing(&listing, &version);
        tracing::info!(%kind, objects = count, %version, "the cache goes on where an earlier run ended");
        self.progress.found(&version);
        *self.resume.lock() = Some((version, wanted, content));
    }

    /// Returns what is wanted, and how much of each object that is. One look at a time: a second beside the first waits
    /// for whoever is about to change it, who waits for the first.
    fn wanted_now(&self) -> (Wanted, Content) {
        let wanted = self.wanted.borrow().clone();
        (wanted, self.wanted_content())
    }

    /// Leaves what is cached for the next run, if it is up to date.
    pub(super) async fn keep_warm(&self) {
        let filled = self.progress.phase() == Phase::Synced;
        let (wanted, content) = self.wanted_now();
        let reading = self.warm_reading(&wanted, content);
        let Some((warm, reading)) = reading.filter(|_| filled) else {
            return;
        };
        let Some(version) = self.progress.version() else {
            return;
        };
        let kind = self.gvk();
        if let Err(reason) = warm.leave(kind, &reading, (&version, &self.store)).await {
            let file = warm.file(kind);
            let file = file.display();
            tracing::warn!(%kind, %file, %reason, "nothing is left for the next start");
        }
    }

    /// Returns where to look, and what has to be the same for what is found to be used.
    fn warm_reading(&self, wanted: &Wanted, content: Content) -> Option<(&WarmStore, String)> {
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
        let reading = format!(
            "{:?} {content:?} {managed:?} {transform:?}",
            wanted.selection
        );
        Some((self.warm.as_ref()?, reading))
    }
}
