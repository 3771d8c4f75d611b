//! Refreshing: reading objects again after a write whose answer does not contain them.

use std::collections::HashMap;
use std::sync::Arc;

use lariat_core::{LabelSelector, ObjectKey, Uid};

use super::core::Core;
use super::reads::LoadError;
use crate::client::Sent;
use crate::store::{CachedObject, Content, Query};

impl Core {
    /// Reads an object again and applies its state.
    pub(super) async fn refresh(&self, key: &ObjectKey) -> Result<(), LoadError> {
        // Before the request: the answer is not older than the writes that were answered by then.
        let sent = Sent::next(self.store().get(key));
        match self.read_object(key).await? {
            Some(json) => self.wrote(json.as_bytes(), Content::Whole, false, sent),
            None => {
                // It did not exist when the request was answered, whatever the watch has reported so far.
                if let Some(uid) = sent.before.as_ref().map(|before| before.uid().clone()) {
                    self.deleted(key, &uid, &sent);
                }
            }
        }
        Ok(())
    }

    /// Reads the objects with some labels again and applies their states.
    ///
    /// Objects in `deleted` that are missing in the answer are removed.
    pub(super) async fn refresh_all(
        &self,
        namespace: Option<&str>,
        labels: &LabelSelector,
        deleted: &[Uid],
    ) -> Result<(), LoadError> {
        let query = namespace.map_or_else(Query::all, Query::in_namespace);
        let present = self.store().select(&query.labels(labels.clone()));
        // Before the request, as in `refresh`; one number for all, because they are read together.
        let number = Sent::next(None).number;
        let by_uid = |object: Arc<CachedObject>| (object.uid().clone(), object);
        let mut before: HashMap<Uid, _> = present.into_iter().map(by_uid).collect();
        let mut intake = self.intake(Content::MetadataOnly);
        let selectors = [("labelSelector", labels.to_string())];
        let list = self.read_list(namespace, &selectors, |json| {
            if let Ok(object) = intake.read(json) {
                let before = before.remove(object.uid());
                self.wrote(json, Content::Whole, false, Sent { before, number });
            }
        });
        list.await?;
        for uid in deleted {
            let Some(object) = before.remove(uid) else {
                continue;
            };
            // With a finalizer it may still exist, with labels that do not match any more.
            if object.finalizers().next().is_none() {
                let before = Some(Arc::clone(&object));
                self.deleted(object.key(), uid, &Sent { before, number });
            } else {
                // Read by name, whatever its labels are.
                self.refresh(object.key()).await?;
            }
        }
        Ok(())
    }
}
