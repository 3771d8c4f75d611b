//! Objects of one kind as the API server has them, of whatever type, and changes of their newest state.

mod change;
mod managers;

use std::sync::Arc;

use kube::Client;
use kube::api::{GetParams, ListParams, Patch, PatchParams};
use kube::core::{ObjectList, Request};
use lariat_cache::{CachedObject, KindClient, SharedCacheFactory, View};
use lariat_core::{Gvk, ObjectKey, RawObject, RawObjectError, ResourceKind, path_segment};
use serde_json::{Value, json};

use crate::api::ApiError;
use crate::reconciler::Reconcile;
pub(crate) use change::{Attempt, Changed};
pub(crate) use managers::Managers;

/// A page of objects, of which only the metadata is there, and where the next one begins.
pub(crate) type Page = (Vec<Arc<CachedObject>>, Option<String>);

/// Requests about objects of one kind, whose answers are kept as raw objects.
pub(crate) struct Wire {
    client: Client,
    resource: ResourceKind,
    /// How many times a change is tried before somebody else is believed to change the object all the time.
    tries: usize,
}

/// How often that is by default.
const TRIES: usize = 5;

impl Wire {
    /// Makes requests of a reconciler, under its identity.
    pub(crate) async fn of<K: View>(cx: &Reconcile<K>) -> Result<Self, ApiError> {
        let kind = cx.shared().caches.clients().for_kind(cx.gvk());
        let resource = kind.resource().await?;
        Ok(Self {
            client: cx.client(),
            resource,
            tries: TRIES,
        })
    }

    pub(crate) async fn of_kind(kind: &KindClient) -> Result<Self, ApiError> {
        let resource = kind.resource().await?;
        Ok(Self {
            client: kind.client(),
            resource,
            tries: TRIES,
        })
    }

    /// Makes every change be tried once, on the state that is given.
    pub(crate) fn once(self) -> Self {
        Self { tries: 1, ..self }
    }

    pub(crate) fn gvk(&self) -> &Gvk {
        self.resource.gvk()
    }

    /// Returns an object as it is now, or `None` if it does not exist.
    pub(crate) async fn get(&self, key: &ObjectKey) -> Result<Option<Arc<CachedObject>>, ApiError> {
        let name = path_segment(key.name());
        let request = self.about(key).get(&name, &GetParams::default());
        match self.send("get", key, request).await {
            Ok(answer) => self.read("get", key, &answer).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Patches an object, or one of its subresources.
    pub(crate) async fn patch(
        &self,
        key: &ObjectKey,
        subresource: Option<&str>,
        params: &PatchParams,
        patch: &Patch<Value>,
    ) -> Result<Arc<CachedObject>, ApiError> {
        let answer = self.patch_text(key, subresource, params, patch).await?;
        self.read("patch", key, &answer)
    }

    /// Patches an object, or one of its subresources, and returns the answer as it was sent.
    async fn patch_text(
        &self,
        key: &ObjectKey,
        subresource: Option<&str>,
        params: &PatchParams,
        patch: &Patch<Value>,
    ) -> Result<String, ApiError> {
        let (about, name) = (self.about(key), path_segment(key.name()));
        let request = match subresource {
            Some(subresource) => about.patch_subresource(subresource, &name, params, patch),
            None => about.patch(&name, params, patch),
        };
        self.send("patch", key, request).await
    }

    /// Returns a page of the objects of the kind, everywhere.
    pub(crate) async fn page(&self, params: &ListParams) -> Result<Page, kube::Error> {
        let request = Request::new(self.resource.collection_path(None)).list_metadata(params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        // Not `Client::request`, which logs what it cannot read.
        let text = self.client.request_text(request).await?;
        let page: ObjectList<Value> =
            serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
        let read = |object: &Value| {
            let raw = RawObject::parse(object.to_string().as_bytes(), self.gvk())?;
            Ok(Arc::new(CachedObject::new(raw)))
        };
        let objects: Result<_, RawObjectError> = page.items.iter().map(read).collect();
        let objects = objects.map_err(|error| kube::Error::Service(error.into()))?;
        let token = page.metadata.continue_;
        Ok((objects, token.filter(|token| !token.is_empty())))
    }

    fn about(&self, key: &ObjectKey) -> Request {
        Request::new(self.resource.collection_path(key.namespace()))
    }

    async fn send(
        &self,
        verb: &'static str,
        key: &ObjectKey,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<String, ApiError> {
        let refused = |source| ApiError::refused(verb, self.gvk(), key, source);
        let request = request.map_err(|error| refused(kube::Error::BuildRequest(error)))?;
        // Not `Client::request`, which logs what it cannot read.
        self.client.request_text(request).await.map_err(refused)
    }

    fn read(
        &self,
        verb: &'static str,
        key: &ObjectKey,
        answer: &str,
    ) -> Result<Arc<CachedObject>, ApiError> {
        let raw = RawObject::parse(answer.as_bytes(), self.gvk()).map_err(|error| {
            ApiError::refused(verb, self.gvk(), key, kube::Error::Service(error.into()))
        })?;
        let object = Arc::new(CachedObject::new(raw));
        if object.key() == key {
            return Ok(object);
        }
        Err(ApiError::another(verb, self.gvk(), key, object.key()))
    }
}

/// Returns what every apply of an object says.
pub(crate) fn identity_of(gvk: &Gvk, key: &ObjectKey) -> Value {
    let mut fields = json!({
        "apiVersion": gvk.api_version(),
        "kind": gvk.kind(),
        "metadata": {"name": key.name()},
    });
    if let Some(namespace) = key.namespace() {
        fields["metadata"]["namespace"] = namespace.into();
    }
    fields
}

/// Returns whether what the cache of a kind shows at a JSON pointer is what the API server has. What a transform left
/// out must not be taken for missing: a change that is worked out so names the true version, and is made.
pub(crate) fn is_shown(caches: &SharedCacheFactory, gvk: &Gvk, pointer: &str) -> bool {
    let informer = caches.existing(gvk);
    informer.is_some_and(|informer| informer.keeps(pointer))
}

/// Returns the Status the API server refused a request with.
pub(crate) fn status_of(error: &ApiError) -> Option<&kube::core::Status> {
    match error {
        ApiError::Refused { source, .. } => match &**source {
            kube::Error::Api(status) => Some(status),
            _ => None,
        },
        _ => None,
    }
}

/// Reads the JSON of an object; an empty object if it cannot be read.
pub(crate) fn json_of(object: &CachedObject) -> Value {
    let json = object.json().unwrap_or_default();
    serde_json::from_slice(&json).unwrap_or_else(|_| Value::Object(serde_json::Map::new()))
}
