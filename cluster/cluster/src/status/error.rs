//! The error response of the API.

use std::borrow::Cow;

use http::StatusCode;
use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::go_text::quoted;
use lariat_apimachinery::kinds::{Resource, qualified};
use serde::Serialize;
use serde_json::Value;

use super::codes;

/// An answer that is an error.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) code: StatusCode,
    /// Answer `404 page not found` as plain text, as the server's router does.
    pub(crate) plain: bool,
    status: Box<Status>,
}

/// The wire form, its members in the server's order.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    kind: &'static str,
    api_version: &'static str,
    metadata: ListMeta,
    status: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

#[derive(Debug, Clone, Default, Serialize)]
struct ListMeta {
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    continue_token: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<StatusCause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
}

impl ApiError {
    pub(super) fn new(
        code: StatusCode,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            plain: false,
            status: Box::new(Status {
                kind: "Status",
                api_version: "v1",
                metadata: ListMeta::default(),
                status: "Failure",
                message: message.into(),
                reason: reason.into(),
                details: None,
                code: Some(code.as_u16()),
            }),
        }
    }

    pub(crate) fn about(mut self, kind: &str, group: &str, name: &str) -> Self {
        // Without kind and name this still writes `details: {}`, as NewGenericServerResponse does.
        let details = self.status.details.get_or_insert_default();
        (details.kind, details.group, details.name) = (kind.into(), group.into(), name.into());
        self
    }

    /// Sets the resource and the name of an object in the details.
    pub(super) fn about_object(self, resource: &Resource, name: &str) -> Self {
        self.about(&resource.plural, &resource.group, name)
    }

    pub(crate) fn causes(mut self, causes: &[StatusCause]) -> Self {
        self.status.details.get_or_insert_default().causes = causes.to_vec();
        self
    }

    /// Copies the details of another status.
    pub(super) fn with_details(mut self, details: &Value) -> Self {
        if details.is_object() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let causes = details["causes"].as_array().into_iter().flatten();
            let cause = |cause: &Value| {
                let (field, message) = (text(&cause["field"]), text(&cause["message"]));
                StatusCause::new(text(&cause["reason"]), &field, message)
            };
            self.status.details = Some(Details {
                name: text(&details["name"]),
                group: text(&details["group"]),
                kind: text(&details["kind"]),
                uid: text(&details["uid"]),
                causes: causes.map(cause).collect(),
                retry_after_seconds: details["retryAfterSeconds"].as_u64(),
            });
        }
        self
    }

    pub(crate) fn page_not_found() -> Self {
        let error = Self::new(StatusCode::NOT_FOUND, "NotFound", "404 page not found");
        Self {
            plain: true,
            ..error
        }
    }

    pub(crate) fn unknown_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about("", "", "")
    }

    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        if resource.group.is_empty() && resource.plural == "componentstatuses" {
            // Their registry names the kind.
            let message = format!("componentstatus {name} not found", name = quoted(name));
            let error = Self::new(StatusCode::NOT_FOUND, "NotFound", message);
            return error.about("componentstatus", "", name);
        }
        let message = format!(
            "{} {name} not found",
            resource.qualified(),
            name = quoted(name)
        );
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about_object(resource, name)
    }

    pub(crate) fn namespace_not_found(name: &str) -> Self {
        let message = format!("namespaces {name} not found", name = quoted(name));
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about("namespaces", "", name)
    }

    pub(crate) fn namespace_mismatch() -> Self {
        Self::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn invalid(resource: &Resource, name: &str, causes: &[StatusCause]) -> Self {
        Self::invalid_as(&resource.kind, checked_group(resource), name, causes)
    }

    /// Options of a deletion that are wrong.
    pub(crate) fn invalid_delete_options(causes: &[StatusCause]) -> Self {
        Self::invalid_as("DeleteOptions", "meta.k8s.io", "", causes)
    }

    pub(crate) fn invalid_as(kind: &str, group: &str, name: &str, causes: &[StatusCause]) -> Self {
        // A cause that was found twice is reported once.
        let mut texts: Vec<String> = Vec::with_capacity(causes.len());
        for text in causes.iter().map(StatusCause::text) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let detail = match &texts[..] {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!(
            "{} {name} is invalid: {detail}",
            qualified(kind, group),
            name = quoted(name)
        );
        // As NewInvalid in Go: the list of causes keeps those that were found twice.
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
            .about(kind, group, name)
            .causes(causes)
    }

    /// A patch whose outcome cannot be read.
    pub(crate) fn invalid_patch(cause: StatusCause) -> Self {
        Self::invalid_as("", "", "", &[cause])
    }

    pub(crate) fn too_many_operations(limit: usize, sent: usize) -> Self {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {limit}, \
             got {sent}"
        );
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            message,
        )
    }

    pub(crate) fn rejected_patch() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about("", "", "")
    }

    pub(crate) fn forbidden(resource: &Resource, name: &str, detail: &str) -> Self {
        let message = format!(
            "{} {name} is forbidden: {detail}",
            resource.qualified(),
            name = quoted(name)
        );
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about_object(resource, name)
    }

    pub(crate) fn namespace_terminating(resource: &Resource, name: &str, namespace: &str) -> Self {
        let detail = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let message = format!("namespace {namespace} is being terminated");
        let cause = StatusCause::new("NamespaceTerminating", "metadata.namespace", message);
        Self::forbidden(resource, name, &detail).causes(&[cause])
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about("", "", "")
    }

    /// A verb that a custom resource does not have; empty for unknown methods.
    pub(crate) fn verb_not_supported(verb: &str, resource: &Resource) -> Self {
        let message = format!(
            "{verb} is not supported on resources of kind {:?}",
            resource.qualified()
        );
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about(
            &resource.plural,
            &resource.group,
            "",
        )
    }

    /// The error of a watch of a resource that can only be read.
    pub(crate) fn watch_not_supported(plural: &str) -> Self {
        let message = format!(
            "watch is not supported on resources of kind {plural}",
            plural = quoted(plural)
        );
        let error = Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message);
        error.about(plural, "", "")
    }

    pub(crate) fn not_acceptable(available: &str) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message).about("", "", "")
    }

    /// Returns whether it is that of a media type for which there is no route.
    pub(crate) fn is_without_route(&self) -> bool {
        // Both kinds of 406 have the same reason; only the text tells them apart.
        self.status.message.starts_with("406: ")
    }

    /// A form of objects that is not served.
    pub(crate) fn only_acceptable(accepted: &str) -> Self {
        let message = format!("only the following media types are accepted: {accepted}");
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// The shape of a list for an object, or the reverse.
    ///
    /// `go_type` is the type of the answer.
    pub(crate) fn wrong_shape(answers_list: bool, go_type: &str) -> Self {
        let (requested, found) = if answers_list {
            ("PartialObjectMetadata", "a list")
        } else {
            ("PartialObjectMetadataList", "not a list")
        };
        let message =
            format!("you requested {requested}, but the requested object is {found} ({go_type})");
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// A type of patch that built-in kinds do not have.
    pub(crate) fn unsupported_patch_type() -> Self {
        let message = "415: Unsupported Media Type";
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            message,
        )
        .about("", "", "")
    }

    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: \
             {accepted}"
        );
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            message,
        )
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            message,
        )
    }

    pub(crate) fn list_expired() -> Self {
        let message = "The resourceVersion for the provided list is too old.";
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// A continue token that is too old; `replacement` continues without consistency.
    pub(crate) fn continue_expired(replacement: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list \
            result. You can start a new list without the continue parameter, or use the continue \
            token in this response to retrieve the remainder of the results. Continuing with the \
            provided token results in an inconsistent list - objects that were created, modified, \
            or deleted between the time the first chunk was returned and now may show up in the \
            list.";
        let mut error = Self::new(StatusCode::GONE, "Expired", message);
        error.status.metadata.continue_token = Some(replacement);
        error
    }

    pub(crate) fn watch_expired(requested: u64, oldest: u64) -> Self {
        let message = format!("too old resource version: {requested} ({oldest})");
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub(crate) fn version_too_large(requested: u64, current: u64) -> Self {
        let message =
            format!("Timeout: Too large resource version: {requested}, current: {current}");
        let cause = StatusCause::new("ResourceVersionTooLarge", "", "Too large resource version");
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
            .causes(&[cause])
            .after(Some(1))
    }

    /// A request that took too long.
    ///
    /// Source: `WithTimeoutForNonLongRunningRequests` in `k8s.io/apiserver/pkg/server/filters`.
    pub(crate) fn timed_out() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        // As NewTimeoutError with 0 seconds: the details are there, but empty.
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).after(None)
    }

    /// The error of a list whose objects cannot be read.
    ///
    /// Source: the watch cache, `k8s.io/apiserver/pkg/storage/cacher`.
    pub(crate) fn initializing(reason: &str) -> Self {
        let message = format!("storage is (re)initializing: {reason}");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message).after(Some(1))
    }

    /// Sets the seconds after which the client may try again.
    pub(super) fn after(mut self, seconds: Option<u64>) -> Self {
        let details = self.status.details.get_or_insert_default();
        details.retry_after_seconds = seconds;
        self
    }

    /// The error of a fault, whatever the request was.
    pub(crate) fn refused(code: StatusCode, retry_after: Option<u64>) -> Self {
        Self::new(code, codes::reason(code), codes::message(code)).after(retry_after)
    }

    /// The 500 with a reason that parts of the API server use for their failures.
    pub(crate) fn internal_error(message: impl Into<String>) -> Self {
        let message = message.into();
        let cause = StatusCause::new("", "", message.as_str());
        let message = format!("Internal error occurred: {message}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message).causes(&[cause])
    }

    /// The 500 without a reason, by which the API server reports some bad input.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    pub(crate) fn shut_down() -> Self {
        let (code, reason) = (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable");
        Self::new(code, reason, "the cluster has been shut down")
    }

    /// Returns the sentence for the client.
    pub(crate) fn message(&self) -> &str {
        &self.status.message
    }

    pub(crate) fn is_invalid(&self) -> bool {
        self.status.reason == "Invalid"
    }

    pub(crate) fn is_already_exists(&self) -> bool {
        self.status.reason == "AlreadyExists"
    }

    /// Returns whether a namespace that is being deleted takes nothing new.
    #[cfg(feature = "workloads")]
    pub(crate) fn is_namespace_terminating(&self) -> bool {
        let details = self.status.details.as_ref();
        let mut causes = details.into_iter().flat_map(|details| &details.causes);
        causes.any(|cause| cause.reason() == "NamespaceTerminating")
    }

    /// Returns the seconds of the `Retry-After` header, if there is one.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.status.details.as_ref()?.retry_after_seconds
    }

    /// Returns the Status object.
    pub(crate) fn json(&self) -> Vec<u8> {
        to_json(&self.status)
    }
}

/// Returns the Status that answers a successful deletion.
pub(crate) fn deleted(resource: &Resource, name: &str, uid: &str) -> Vec<u8> {
    to_json(&Status {
        kind: "Status",
        api_version: "v1",
        metadata: ListMeta::default(),
        status: "Success",
        message: String::new(),
        reason: "".into(),
        details: Some(Details {
            name: name.into(),
            group: resource.group.clone(),
            kind: resource.plural.clone(),
            uid: uid.into(),
            ..Details::default()
        }),
        code: None,
    })
}

/// Returns the group as which a kind is checked: events of both groups are those of the core.
pub(super) fn checked_group(resource: &Resource) -> &str {
    match resource.kind.as_str() {
        "Event" if !resource.rules.custom => "",
        _ => &resource.group,
    }
}

fn to_json(status: &Status) -> Vec<u8> {
    serde_json::to_vec(status).expect("a status has only texts and numbers")
}
