//! Own writes: applying the program's writes to the caches before the watch reports them.

use std::sync::{Arc, Weak};

use http::Method;
use lariat_core::Uid;
use serde::Deserialize;

use super::FactoryCore;
use crate::client::{KindCache, OF_THE_OBJECT, Sent, Write, WriteObserver};
use crate::informer::Core;
use crate::store::Content;

/// Passes the answers to writes to the caches.
///
/// Uncertain cases are left to the watch: subresources that answer with another object, deletions of whole collections,
/// and objects that a field selector may exclude.
pub(super) struct OwnWrites {
    pub(super) factory: Weak<FactoryCore>,
}

/// The fields of an answer that show what happened to the object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    kind: String,
    metadata: Metadata,
    spec: Spec,
    details: Details,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<String>>,
}

/// Namespaces also have finalizers in their spec.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    finalizers: Option<Vec<String>>,
}

/// The details of a `Status`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    uid: String,
}

impl WriteObserver for OwnWrites {
    fn cache_of(&self, write: &Write) -> Option<KindCache> {
        let core = self.factory.upgrade()?.written_to(write)?;
        Some(KindCache {
            gvk: core.gvk().clone(),
            store: Arc::clone(core.store()),
            is_whole: core.is_whole(write.namespace.as_deref()),
        })
    }

    fn wrote(&self, write: &Write, answer: &[u8], sent: Sent) {
        let subresource = write.subresource.as_deref();
        if subresource.is_some_and(|name| !OF_THE_OBJECT.contains(&name)) {
            return;
        }
        let factory = self.factory.upgrade();
        let Some(core) = factory.and_then(|factory| factory.written_to(write)) else {
            return;
        };
        let Ok(read) = serde_json::from_slice::<Answer>(answer) else {
            return;
        };
        let namespace = write.namespace.as_deref().unwrap_or_default();
        let deletes = write.method == Method::DELETE && subresource.is_none();
        // A deletion that is complete: the API server answers with the uid only.
        if read.kind == "Status" && deletes && !read.details.uid.is_empty() {
            let uid = Uid::new(&read.details.uid);
            return core.deleted(&write.key(), &uid, &sent);
        }
        // The request was for metadata only.
        let is_partial = read.kind == "PartialObjectMetadata";
        if is_partial && (deletes || read.metadata.deletion_timestamp.is_some()) {
            // Some kinds have finalizers outside their metadata, so it is not certain whether the object still exists.
            return;
        }
        // The name is empty in a creation that leaves the name to the server.
        let is_it = (is_partial || read.kind == core.gvk().kind())
            && read.metadata.namespace == namespace
            && (write.name.is_empty() || read.metadata.name == write.name);
        if is_it {
            let content = if is_partial {
                Content::MetadataOnly
            } else {
                Content::Whole
            };
            core.wrote(answer, content, read.is_deleted(deletes), sent);
        }
    }
}

impl Answer {
    /// Returns whether the object does not exist any more after the write.
    fn is_deleted(&self, by_deletion: bool) -> bool {
        let holds = |finalizers: &Option<Vec<String>>| {
            finalizers.as_ref().is_some_and(|names| !names.is_empty())
        };
        let metadata = &self.metadata;
        // A finalizer or a grace period keeps an object with a deletion timestamp in existence.
        let remains = holds(&metadata.finalizers)
            || holds(&self.spec.finalizers)
            || metadata.deletion_grace_period_seconds.unwrap_or(0) > 0;
        match metadata.deletion_timestamp {
            // The last finalizer was removed, or there was none.
            Some(_) => !remains,
            // Some kinds answer a deletion with their last state, without a timestamp.
            None => by_deletion,
        }
    }
}

impl FactoryCore {
    /// Returns the informer of the written kind, if it is cached.
    fn written_to(&self, write: &Write) -> Option<Arc<Core>> {
        // The last known resource: one of several API servers may not know the kind yet while another one answers the
        // write.
        let found = self.kinds.iter().find(|kind| {
            kind.core.last_resource().is_some_and(|resource| {
                resource.plural() == write.plural && resource.gvk().api_path() == write.api_path
            })
        });
        found.map(|kind| Arc::clone(&kind.core))
    }
}
