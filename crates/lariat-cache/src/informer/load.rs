//! Loading: fetching the content of objects of which only metadata is cached.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use lariat_client::is_missing;
use lariat_core::{Gvk, ObjectKey};
use tokio::time;

use super::core::Core;
use crate::mapper::MapperError;
use crate::store::{CachedObject, Content};

/// How long a load waits for an upgrade of the watch before it fetches one object.
pub(super) const UPGRADE_WAIT: Duration = Duration::from_secs(20);

/// The timeout of the API server's answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// How many bytes an object may have, as in a watch.
const OBJECT_LIMIT: usize = 16 * 1024 * 1024;

/// The error of a load: the content could not be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Discovery could not resolve the resource of the kind.
    #[error("the content of {gvk} {key} cannot be fetched")]
    Mapper {
        /// The kind.
        gvk: Gvk,
        /// The object.
        key: ObjectKey,
        /// The error of the mapper.
        source: MapperError,
    },
    /// The API server did not answer in time.
    #[error("the content of {gvk} {key} cannot be fetched: no answer within {after:?}")]
    Unanswered {
        /// The kind.
        gvk: Gvk,
        /// The object.
        key: ObjectKey,
        /// The time limit.
        after: Duration,
    },
    /// The request failed, or the API server refused it.
    #[error("the content of {gvk} {key} cannot be fetched")]
    Request {
        /// The kind.
        gvk: Gvk,
        /// The object.
        key: ObjectKey,
        /// The client's error.
        source: kube::Error,
    },
    /// The answer is not a valid object of the kind.
    #[error("the answer for the content of {gvk} {key} is malformed: {detail}")]
    Malformed {
        /// The kind.
        gvk: Gvk,
        /// The object.
        key: ObjectKey,
        /// What is wrong with the answer; it contains no values.
        detail: String,
    },
}

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
        let gvk = self.gvk();
        let resource = self
            .client
            .resource()
            .await
            .map_err(|source| LoadError::Mapper {
                gvk: gvk.clone(),
                key: key.clone(),
                source,
            })?;
        let failed = |source| LoadError::Request {
            gvk: gvk.clone(),
            key: key.clone(),
            source,
        };
        let request = Request::get(resource.object_path(key))
            .body(Vec::new())
            .map_err(|error| failed(kube::Error::HttpError(error)))?;
        let client = self.client.reading_client();
        let answer = time::timeout(ANSWER_TIMEOUT, client.request_text(request, OBJECT_LIMIT));
        let json = match answer.await {
            Ok(Ok(json)) => json,
            Ok(Err(error)) if is_missing(&error) => return Ok(None),
            Ok(Err(error)) => return Err(failed(error)),
            Err(_) => {
                let (gvk, key, after) = (gvk.clone(), key.clone(), ANSWER_TIMEOUT);
                return Err(LoadError::Unanswered { gvk, key, after });
            }
        };
        let object = self
            .intake(Content::Whole)
            .read(json.as_bytes())
            .map_err(|error| LoadError::Malformed {
                gvk: gvk.clone(),
                key: key.clone(),
                detail: error.to_string(),
            })?;
        // If a CRD was deleted and created again with another scope, this path may name another object. The cached
        // object does not exist any more then, which the next list will show.
        let is_asked_for = object.key() == key;
        Ok(is_asked_for.then(|| Arc::new(CachedObject::new(object))))
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
