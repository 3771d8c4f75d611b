//! Own writes: applying the program's writes to the caches before the watch reports them.

use std::sync::{Arc, Weak};

use http::Method;
use lariat_core::{Gvk, Uid};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::FactoryCore;
use crate::client::{KindCache, OF_THE_OBJECT, Sent, Write, WriteObserver};
use crate::informer::Core;
use crate::store::Content;

/// Passes the answers to writes to the caches.
///
/// Uncertain cases are left to the watch: subresources that answer with another object, deletions of whole collections,
/// objects that a field selector may exclude, and deletions after which the object may still exist.
pub(super) struct OwnWrites {
    pub(super) factory: Weak<FactoryCore>,
}

/// The fields of an answer that show what happened to the object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    kind: String,
    metadata: Metadata,
    #[serde(deserialize_with = "lenient")]
    spec: Spec,
    #[serde(deserialize_with = "lenient")]
    details: Details,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<i64>,
    #[serde(rename = "finalizers", deserialize_with = "is_there")]
    has_finalizers: bool,
}

/// Namespaces also have finalizers in their spec.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(rename = "finalizers", deserialize_with = "is_there")]
    has_finalizers: bool,
}

/// The details of a `Status`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    uid: String,
}

/// Reads a member that other kinds may use for something else, in any type.
fn lenient<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    let json = <&RawValue>::deserialize(from)?;
    Ok(serde_json::from_str(json.get()).unwrap_or_default())
}

/// Reads whether a list has elements; a value that is not a list counts as one.
fn is_there<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    let json = <&RawValue>::deserialize(from)?;
    let list: Result<Option<Vec<IgnoredAny>>, _> = serde_json::from_str(json.get());
    Ok(list.map_or(true, |list| list.is_some_and(|list| !list.is_empty())))
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
        let Some(factory) = self.factory.upgrade() else {
            return;
        };
        let Some(core) = factory.written_to(write) else {
            // It may be cached later, from objects of an earlier run, which lack it.
            return factory.common.missed.add(&write.api_path, &write.plural);
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
        // An API server of its own may answer before it deletes, or never delete. The object would be hidden meanwhile.
        let is_marked = read.metadata.deletion_timestamp.is_some();
        if deletes && !is_marked && !answers_deleted(core.gvk()) {
            return;
        }
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
        let metadata = &self.metadata;
        // A finalizer or a grace period keeps an object with a deletion timestamp in existence.
        let remains = metadata.has_finalizers
            || self.spec.has_finalizers
            || metadata.deletion_grace_period_seconds.unwrap_or(0) > 0;
        match metadata.deletion_timestamp {
            // The last finalizer was removed, or there was none.
            Some(_) => !remains,
            // The last state of a deleted object.
            None => by_deletion && !remains,
        }
    }
}

/// Returns whether a deletion that is answered with an unmarked object is complete.
///
/// Core kinds such as ServiceAccounts answer with their last state (`ReturnDeletedObject`). No other API server can
/// serve a core kind.
fn answers_deleted(gvk: &Gvk) -> bool {
    gvk.group().is_empty()
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
