//! Requests of an apply, and their errors.

use kube::Client;
use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, Preconditions};
use kube::core::response::StatusCause;
use kube::core::{Request, Status};
use lariat_core::{ResourceKind, path_segment};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{FieldConflict, ObjectError};
use super::meta::{Meta, Page, Partial};
use crate::wire::{Built, Sender, is_secret, without_words};

/// The page size of lists.
const PAGE: u32 = 500;

/// The API path of a request, and its field manager.
pub(super) struct Endpoint<'a> {
    sender: Sender,
    resource: &'a ResourceKind,
    namespace: Option<&'a str>,
}

impl<'a> Endpoint<'a> {
    /// Restricts requests to a namespace, or to none.
    pub(super) fn within(
        client: &Client,
        resource: &'a ResourceKind,
        namespace: Option<&'a str>,
    ) -> Self {
        Self {
            sender: Sender::new(client.clone()),
            resource,
            namespace,
        }
    }

    fn request(&self) -> Request {
        Request::new(self.resource.collection_path(self.namespace))
    }

    async fn send(&self, verb: &'static str, request: Built) -> Result<String, ObjectError> {
        let answer = self.sender.text(request).await;
        answer.map_err(|error| self.explain(verb, error))
    }

    /// Applies an object, or makes a dry run; returns its new JSON.
    pub(super) async fn apply(
        &self,
        name: &str,
        object: &Value,
        params: &PatchParams,
    ) -> Result<String, ObjectError> {
        let request = self
            .request()
            .patch(&path_segment(name), params, &Patch::Apply(object));
        self.send("apply", request).await
    }

    /// Merges a patch into an object; returns its new JSON.
    pub(super) async fn merge(
        &self,
        name: &str,
        patch: &Value,
        params: &PatchParams,
    ) -> Result<String, ObjectError> {
        let request = self
            .request()
            .patch(&path_segment(name), params, &Patch::Merge(patch));
        self.send("patch", request).await
    }

    /// Returns an object's JSON, or `None` if it does not exist.
    pub(super) async fn get(&self, name: &str) -> Result<Option<String>, ObjectError> {
        let request = self
            .request()
            .get(&path_segment(name), &GetParams::default());
        found(self.send("get", request).await)
    }

    /// Returns an object's metadata, or `None` if it does not exist.
    pub(super) async fn metadata(&self, name: &str) -> Result<Option<Meta>, ObjectError> {
        let request = self
            .request()
            .get_metadata(&path_segment(name), &GetParams::default());
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

    /// Deletes the state of an object that was read; its dependents are deleted in the background.
    ///
    /// Returns whether it was that state; if not, the object has changed or does not exist any more.
    pub(super) async fn delete(
        &self,
        name: &str,
        state: Preconditions,
    ) -> Result<bool, ObjectError> {
        let params = DeleteParams::background().preconditions(state);
        let request = self.request().delete(&path_segment(name), &params);
        match self.send("delete", request).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_missing() => Ok(true),
            Err(error) if error.has_code(409) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Interprets an error.
    fn explain(&self, verb: &'static str, error: kube::Error) -> ObjectError {
        let kube::Error::Api(status) = &error else {
            let source = Box::new(error);
            return ObjectError::Refused { verb, source };
        };
        let is_secret = is_secret(self.resource.gvk());
        if has_cause(status, "NamespaceTerminating") {
            return ObjectError::NamespaceTerminating;
        }
        let conflicts = conflicts(status);
        if status.code == 409 && !conflicts.is_empty() {
            return ObjectError::Conflicts { conflicts };
        }
        if verb == "apply" && status.code == 422 && !is_of_another_uid(status) {
            return invalid(status, is_secret);
        }
        let source = Box::new(if is_secret {
            kube::Error::Api(Box::new(without_words(status)))
        } else {
            error
        });
        ObjectError::Refused { verb, source }
    }
}

fn invalid(status: &Status, is_secret: bool) -> ObjectError {
    let fields = immutable_fields(status);
    if !fields.is_empty() {
        return ObjectError::Immutable { fields };
    }
    let reason = if is_secret {
        let fields: Vec<&str> = causes(status).map(|cause| &*cause.field).collect();
        fields.join(", ")
    } else {
        status.message.clone()
    };
    ObjectError::Invalid { reason }
}

impl ObjectError {
    pub(super) fn has_code(&self, code: u16) -> bool {
        let Self::Refused { source, .. } = self else {
            return false;
        };
        matches!(&**source, kube::Error::Api(status) if status.code == code)
    }

    /// Returns whether the object does not exist; for a kind that is not served, it may.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if lariat_cache::is_missing(source))
    }

    /// Returns whether reading is forbidden. Forbidden writes may have other reasons, such as admission.
    pub(super) fn is_reading_forbidden(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                verb: "get" | "list",
                ..
            }
        ) && self.has_code(403)
    }

    /// Returns whether a write was refused because the object is not the one that was read: its uid or resource version
    /// differs, or it does not exist any more.
    pub(super) fn is_outdated(&self) -> bool {
        let Self::Refused { source, .. } = self else {
            return false;
        };
        let kube::Error::Api(status) = &**source else {
            return false;
        };
        status.code == 409 || is_of_another_uid(status)
    }
}

/// Returns whether an object has another uid than the apply: the API server takes that for an attempt to change the
/// uid.
fn is_of_another_uid(status: &Status) -> bool {
    status.code == 422 && causes(status).any(|cause| cause.field == "metadata.uid")
}

fn causes(status: &Status) -> impl Iterator<Item = &StatusCause> {
    status.details.iter().flat_map(|details| &details.causes)
}

fn found(answer: Result<String, ObjectError>) -> Result<Option<String>, ObjectError> {
    match answer {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Decodes an answer. Values stay out of the error: they may be the content of an object.
pub(super) fn parse<T: DeserializeOwned>(verb: &'static str, text: &str) -> Result<T, ObjectError> {
    serde_json::from_str(text).map_err(|_| ObjectError::Unreadable { verb })
}

fn has_cause(status: &Status, reason: &str) -> bool {
    causes(status).any(|cause| cause.reason == reason)
}

fn conflicts(status: &Status) -> Vec<FieldConflict> {
    let conflicts = causes(status).filter(|cause| cause.reason == "FieldManagerConflict");
    let read = |cause: &StatusCause| FieldConflict {
        field: cause.field.clone(),
        manager: cause.message.clone(),
    };
    conflicts.map(read).collect()
}

/// Returns the fields that an error calls immutable.
///
/// None if it has other causes too, because then even a new object would be refused.
fn immutable_fields(status: &Status) -> Vec<String> {
    if !causes(status).all(is_immutable) {
        return Vec::new();
    }
    causes(status).map(|cause| cause.field.clone()).collect()
}

/// Returns whether a cause is an immutable field.
///
/// There is no code for it. These are the messages of Kubernetes' own kinds; CRDs have their own, mostly with
/// "immutable".
fn is_immutable(cause: &StatusCause) -> bool {
    const WORDS: [&str; 6] = [
        "immutable",
        "may not be changed",
        "may not change",
        "cannot be changed",
        "cannot change",
        "updates to",
    ];
    // The messages of required fields and wrong types mean something else.
    let may_be = matches!(&*cause.reason, "FieldValueInvalid" | "FieldValueForbidden");
    let said = own_words(&cause.message);
    may_be && WORDS.iter().any(|words| said.contains(words))
}

/// Returns the message about a field, without its value before and without further lines.
///
/// The value could be any text.
fn own_words(message: &str) -> &str {
    let line = message.lines().next().unwrap_or_default();
    line.rsplit_once(": ").map_or(line, |(_, said)| said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(causes: &[(&str, &str, &str)]) -> Status {
        let cause = |each: &(&str, &str, &str)| json!({"reason": each.0, "field": each.1, "message": each.2});
        let causes: Vec<Value> = causes.iter().map(cause).collect();
        serde_json::from_value(
            json!({"status": "Failure", "code": 422, "details": {"causes": causes}}),
        )
        .unwrap()
    }

    const SELECTOR: (&str, &str, &str) = (
        "FieldValueInvalid",
        "spec.selector",
        "Invalid value: {\"matchLabels\":{\"app\":\"b\"}}: field is immutable",
    );

    #[test]
    fn words_of_the_kinds_of_kubernetes_are_known() {
        let claim = "Forbidden: spec is immutable after creation except resources.requests\n  core.Spec{\n- x: 1,";
        let pod = "Forbidden: pod updates may not change fields other than `spec.tolerations`\n  core.PodSpec{A: 1}";
        let set =
            "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden";
        let role = "Invalid value: {\"kind\":\"Role\"}: cannot change roleRef";
        for (reason, message) in [
            ("FieldValueForbidden", claim),
            ("FieldValueForbidden", pod),
            ("FieldValueForbidden", set),
            ("FieldValueInvalid", role),
        ] {
            let fields = immutable_fields(&refusal(&[(reason, "spec", message)]));
            assert_eq!(fields, ["spec"], "{message}");
        }
        assert_eq!(immutable_fields(&refusal(&[SELECTOR])), ["spec.selector"]);
    }

    #[test]
    fn what_would_be_refused_anew_is_not_only_immutable() {
        let port = (
            "FieldValueInvalid",
            "spec.port",
            "Invalid value: 700000: must be between 1 and 65535",
        );
        assert_eq!(immutable_fields(&refusal(&[SELECTOR, port])).len(), 0);
        let quoted = (
            "FieldValueInvalid",
            "spec.image",
            "Invalid value: \"registry/immutable-app\": must be known",
        );
        assert_eq!(immutable_fields(&refusal(&[quoted])).len(), 0);
        assert_eq!(immutable_fields(&refusal(&[])).len(), 0);
    }
}
