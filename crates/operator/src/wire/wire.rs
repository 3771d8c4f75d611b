//! Reads and patches the objects of one kind, whatever their type.

use std::sync::Arc;

use kube::Client;
use kube::api::{GetParams, ListParams, Patch, PatchParams};
use kube::core::{ObjectList, Request};
use lariat_cache::{CachedObject, KindClient};
use lariat_core::{Gvk, ObjectKey, RawObject, RawObjectError, ResourceKind, path_segment};
use serde_json::Value;

use super::error::ApiError;
use super::sender::{Built, Sender};

/// A page of objects, of which only the metadata is read.
pub(crate) struct Page {
    pub(crate) objects: Vec<Arc<CachedObject>>,
    /// The continue token; `None` on the last page.
    pub(crate) next: Option<String>,
}

/// Sends requests for objects of one kind, and returns raw objects.
pub(crate) struct Wire {
    sender: Sender,
    resource: ResourceKind,
    /// The number of attempts of a change that conflicts each time.
    pub(super) tries: usize,
}

/// The default number of attempts.
// As client-go's `retry.DefaultRetry`.
const TRIES: usize = 5;

impl Wire {
    /// Creates a handle for the objects of a resource.
    pub(crate) fn new(client: Client, resource: ResourceKind) -> Self {
        Self {
            sender: Sender::new(client),
            resource,
            tries: TRIES,
        }
    }

    /// Creates a handle with the client of a kind whose writes do not need the lease.
    pub(crate) async fn unfenced(kind: &KindClient) -> Result<Self, ApiError> {
        Ok(Self::new(kind.unfenced_client(), kind.resource().await?))
    }

    /// Makes only one attempt of each change, with the given state.
    pub(crate) fn once(self) -> Self {
        Self { tries: 1, ..self }
    }

    pub(crate) fn gvk(&self) -> &Gvk {
        self.resource.gvk()
    }

    /// Reads an object from the API server, or `None` if it does not exist.
    pub(crate) async fn get(&self, key: &ObjectKey) -> Result<Option<Arc<CachedObject>>, ApiError> {
        let name = path_segment(key.name());
        let request = self.about(key).get(&name, &GetParams::default());
        match self.send("get", key, request).await {
            Ok(answer) => self.read("get", key, &answer).map(Some),
            // A 404 because the kind is not served is another error, which is returned.
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

    /// Patches an object or a subresource of it, and returns the text of the answer.
    pub(super) async fn patch_text(
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

    /// Returns a page of the objects of the kind, in all namespaces.
    pub(crate) async fn page(&self, params: &ListParams) -> Result<Page, kube::Error> {
        // Finalizers are metadata, and lists of whole objects may be large.
        let request = Request::new(self.resource.collection_path(None)).list_metadata(params);
        let text = self.sender.text(request).await?;
        let page: ObjectList<Value> =
            serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
        let read = |object: &Value| {
            let raw = RawObject::parse(object.to_string().as_bytes(), self.gvk())?;
            Ok(Arc::new(CachedObject::new(raw)))
        };
        let objects = page
            .items
            .iter()
            .map(read)
            .collect::<Result<_, RawObjectError>>()
            .map_err(|error| kube::Error::Service(error.into()));
        let token = page.metadata.continue_;
        Ok(Page {
            objects: objects?,
            next: token.filter(|token| !token.is_empty()),
        })
    }

    fn about(&self, key: &ObjectKey) -> Request {
        Request::new(self.resource.collection_path(key.namespace()))
    }

    async fn send(
        &self,
        verb: &'static str,
        key: &ObjectKey,
        request: Built,
    ) -> Result<String, ApiError> {
        let answer = self.sender.text(request).await;
        answer.map_err(|source| ApiError::refused(verb, self.gvk(), key, source))
    }

    /// Parses an answer, which must be about the requested object.
    pub(super) fn read(
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
