//! Loading: fetching the content of objects of which only metadata is cached.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use tokio::time;

use super::core::Core;
use super::reads::LoadError;
use crate::client::Sent;
use crate::store::{CachedObject, Content};

/// How long a load waits for an upgrade of the watch before it fetches one object.
pub(super) const UPGRADE_WAIT: Duration = Duration::from_secs(20);

impl Core {
    /// Returns an object with its content, fetched if only metadata is cached.
    ///
    /// Waits up to `timeout` for a watch that is being upgraded.
    pub(super) async fn load(
        &self,
        key: &ObjectKey,
        timeout: Duration,
    ) -> Result<Option<Arc<CachedObject>>, LoadError> {
        // The first pass does not wait: most objects have content, or never will. The second one may wait for the list.
        for timeout in [Duration::ZERO, timeout] {
            // One list is better than a request for each object.
            if self.awaits_content(key) {
                let _ = time::timeout(timeout, self.synced(Content::Whole)).await;
            }
            match self.store.get(key) {
                None => return Ok(None),
                Some(cached) if cached.has_content() => return Ok(Some(cached)),
                Some(_) => {}
            }
        }
        self.fetch_newest(key).await
    }

    /// Returns whether a list or a watch may bring the content of an object.
    pub(super) fn awaits_content(&self, key: &ObjectKey) -> bool {
        let content = self.wanted_content();
        match self.store.get(key) {
            Some(cached) => self.store.wants_content(content, &cached),
            None => content == Content::Whole,
        }
    }

    /// Fetches an object that is no older than the cached one when this returns.
    ///
    /// The watch, or the answer to a write of this process, may change the cached object during the request. Then it is
    /// fetched again, so each such change costs one more request.
    async fn fetch_newest(&self, key: &ObjectKey) -> Result<Option<Arc<CachedObject>>, LoadError> {
        let mut before = self.store.get(key);
        while let Some(cached) = before {
            let fetched = self.fetch(key).await?;
            let now = self.store.get(key);
            match &now {
                // Deleted meanwhile: the loop ends.
                None => {}
                Some(now) if is_same_state(now, &cached) || is_as_new(fetched.as_deref(), now) => {
                    return Ok(fetched);
                }
                // The content has arrived by the watch.
                Some(now) if now.has_content() => return Ok(Some(Arc::clone(now))),
                Some(_) => {}
            }
            before = now;
        }
        Ok(None)
    }

    /// Fetches an object from the API server.
    async fn fetch(&self, key: &ObjectKey) -> Result<Option<Arc<CachedObject>>, LoadError> {
        let (read, sent) = loop {
            let sent = Sent::next(None).number;
            let read = self.read_object(key).await?;
            // Otherwise the server was restored meanwhile, and this may be a state from before that.
            if !self.shared.server.is_former(sent) {
                break (read, sent);
            }
        };
        let Some(json) = read else {
            return Ok(None);
        };
        let object = self.intake(Content::Whole).read(json.as_bytes());
        let object = object.map_err(|error| self.unread(key, error))?;
        // If a CRD was deleted and created again with another scope, this path may name another object. The cached
        // object does not exist any more then, which the next list will show.
        if object.key() != key {
            return Ok(None);
        }
        self.saw(&object, json.as_bytes(), sent);
        Ok(Some(Arc::new(CachedObject::new(object))))
    }
}

pub(super) fn is_same_state(one: &CachedObject, other: &CachedObject) -> bool {
    one.uid() == other.uid() && one.version() == other.version()
}

/// Returns whether a fetched object is at least as new as the cached one.
///
/// `false` if none was fetched, or if the versions cannot be compared.
pub(super) fn is_as_new(fetched: Option<&CachedObject>, cached: &CachedObject) -> bool {
    let order = fetched.and_then(|fetched| fetched.version().compare(cached.version()));
    order.is_some_and(Ordering::is_ge)
}
