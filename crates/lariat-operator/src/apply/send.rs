//! Requests, and what their answers mean.

use kube::Client;
use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, Preconditions};
use kube::core::{Request, Status, request};
use lariat_core::{ObjectKey, ResourceKind};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{FieldConflict, ObjectError};
use super::meta::{Meta, Page, Partial};

type Built = Result<http::Request<Vec<u8>>, request::Error>;

/// How many objects a page of a list has at most.
const PAGE: u32 = 500;

/// What is sent to, and as whom.
pub(super) struct Endpoint<'a> {
    pub(super) client: &'a Client,
    pub(super) resource: &'a ResourceKind,
    pub(super) namespace: Option<&'a str>,
}

impl<'a> Endpoint<'a> {
    pub(super) fn new(client: &'a Client, resource: &'a ResourceKind, key: &'a ObjectKey) -> Self {
        Self {
            client,
            resource,
            namespace: key.namespace(),
        }
    }

    fn request(&self) -> Request {
        Request::new(self.resource.collection_path(self.namespace))
    }

    async fn send(&self, verb: &'static str, request: Built) -> Result<String, ObjectError> {
        let sent = match request {
            Ok(request) => self.client.request_text(request).await,
            Err(error) => Err(kube::Error::BuildRequest(error)),
        };
        sent.map_err(|error| self.explain(verb, error))
    }

    /// Applies an object, or rehearses that; returns the JSON of its new state.
    pub(super) async fn apply(
        &self,
        name: &str,
        object: &Value,
        params: &PatchParams,
    ) -> Result<String, ObjectError> {
        let request = self.request().patch(name, params, &Patch::Apply(object));
        self.send("apply", request).await
    }

    /// Merges a patch into an object.
    pub(super) async fn merge(
        &self,
        name: &str,
        patch: &Value,
        params: &PatchParams,
    ) -> Result<(), ObjectError> {
        let request = self.request().patch(name, params, &Patch::Merge(patch));
        self.send("patch", request).await.map(drop)
    }

    /// Returns an object's JSON, or `None` if it does not exist.
    pub(super) async fn get(&self, name: &str) -> Result<Option<String>, ObjectError> {
        let request = self.request().get(name, &GetParams::default());
        found(self.send("get", request).await)
    }

    /// Returns an object's metadata, or `None` if it does not exist.
    pub(super) async fn metadata(&self, name: &str) -> Result<Option<Meta>, ObjectError> {
        let request = self.request().get_metadata(name, &GetParams::default());
        let Some(text) = found(self.send("get", request).await)? else {
            return Ok(None);
        };
        let object: Partial = parse("get", &text)?;
        Ok(Some(object.metadata))
    }

    /// Returns the metadata of all objects with labels.
    pub(super) async fn list(&self, selector: &str) -> Result<Vec<Meta>, ObjectError> {
        let (mut all, mut next) = (Vec::new(), None::<String>);
        loop {
            let mut params = ListParams::default().labels(selector).limit(PAGE);
            params.continue_token = next;
            let request = self.request().list_metadata(&params);
            let page: Page = parse("list", &self.send("list", request).await?)?;
            all.extend(page.items.into_iter().map(|item| item.metadata));
            next = page.metadata.next.filter(|token| !token.is_empty());
            if next.is_none() {
                return Ok(all);
            }
        }
    }

    /// Deletes the state of an object that was looked at; what it owns goes in the background.
    ///
    /// Returns whether it was that state; if not, it is gone or another by now.
    pub(super) async fn delete(
        &self,
        name: &str,
        state: Preconditions,
    ) -> Result<bool, ObjectError> {
        let params = DeleteParams::background().preconditions(state);
        let request = self.request().delete(name, &params);
        match self.send("delete", request).await {
            Ok(_) => Ok(true),
            Err(error) if error.has_code(404) => Ok(true),
            Err(error) if error.has_code(409) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Says what a refusal means.
    fn explain(&self, verb: &'static str, error: kube::Error) -> ObjectError {
        let kube::Error::Api(status) = &error else {
            let source = Box::new(error);
            return ObjectError::Refused { verb, source };
        };
        if has_cause(status, "NamespaceTerminating") {
            return ObjectError::NamespaceTerminating;
        }
        let conflicts = conflicts(status);
        if status.code == 409 && !conflicts.is_empty() {
            return ObjectError::Conflicts { conflicts };
        }
        if verb == "apply" && status.code == 422 {
            return self.invalid(status);
        }
        let source = Box::new(error);
        ObjectError::Refused { verb, source }
    }

    fn invalid(&self, status: &Status) -> ObjectError {
        let fields = immutable_fields(status);
        if !fields.is_empty() {
            return ObjectError::Immutable { fields };
        }
        let gvk = self.resource.gvk();
        let causes = status.details.iter().flat_map(|details| &details.causes);
        // The words of the API server quote values.
        let why = if gvk.group().is_empty() && gvk.kind() == "Secret" {
            let fields: Vec<&str> = causes.map(|cause| &*cause.field).collect();
            fields.join(", ")
        } else {
            status.message.clone()
        };
        ObjectError::Invalid { why }
    }
}

impl ObjectError {
    pub(super) fn has_code(&self, code: u16) -> bool {
        let Self::Refused { source, .. } = self else {
            return false;
        };
        matches!(&**source, kube::Error::Api(status) if status.code == code)
    }
}

fn found(answer: Result<String, ObjectError>) -> Result<Option<String>, ObjectError> {
    match answer {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.has_code(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads an answer. What does not fit stays out of the error, for it may be the content of an object.
pub(super) fn parse<T: DeserializeOwned>(verb: &'static str, text: &str) -> Result<T, ObjectError> {
    serde_json::from_str(text).map_err(|_| ObjectError::Unreadable { verb })
}

fn has_cause(status: &Status, reason: &str) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.reason == reason)
}

fn conflicts(status: &Status) -> Vec<FieldConflict> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let conflicts = causes.filter(|cause| cause.reason == "FieldManagerConflict");
    let read = |cause: &kube::core::response::StatusCause| FieldConflict {
        field: cause.field.clone(),
        manager: cause.message.clone(),
    };
    conflicts.map(read).collect()
}

/// Returns the fields a refusal calls immutable. There is no code for it, only words, and these are those of the
/// kinds of Kubernetes; definitions of others say what they like, mostly "immutable".
fn immutable_fields(status: &Status) -> Vec<String> {
    const WORDS: [&str; 5] = [
        "immutable",
        "may not be changed",
        "may not change",
        "cannot be changed",
        "updates to",
    ];
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let said = causes.filter(|cause| {
        // The words of a required field or a wrong type are about something else.
        let may_be = matches!(&*cause.reason, "FieldValueInvalid" | "FieldValueForbidden");
        may_be && WORDS.iter().any(|words| cause.message.contains(words))
    });
    said.map(|cause| cause.field.clone()).collect()
}
