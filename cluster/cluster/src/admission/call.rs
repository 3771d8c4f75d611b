//! One call of one admission webhook, and its result.

use lariat_apimachinery::admission::{Denial, FailurePolicy, Webhook};
use lariat_apimachinery::go_json;
use lariat_apimachinery::object::Object;
use lariat_apimachinery::patch::Patch;
use serde_json::Value;

use super::request::Request;
use super::selection::Invocation;
use crate::status::ApiError;
use crate::webhooks::{self, PostError};
use crate::wire::document::Document;

/// A call of one webhook.
pub(super) struct WebhookCall<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) hook: &'a Webhook,
    pub(super) invocation: &'a Invocation,
    /// It may answer a patch.
    pub(super) mutates: bool,
    /// The object and its present state, in the version of the webhook.
    pub(super) objects: (Option<&'a Object>, Option<&'a Object>),
}

/// The reason for which a request does not go on past a webhook.
#[derive(Debug)]
pub(super) enum CallFailure {
    /// The webhook denies it.
    Denied(Denial),
    /// The webhook could not be called, or its answer is invalid.
    NotAnswered(String),
    /// The webhook does not support dry runs.
    NoDryRun,
}

impl WebhookCall<'_> {
    /// Calls the webhook; returns its patch, if it has one.
    ///
    /// The client gets its warnings whatever it decides.
    pub(super) async fn send(&self) -> Result<Option<Patch>, CallFailure> {
        let (request, hook) = (self.request, self.hook);
        if request.attributes.dry_run && !hook.takes_dry_runs {
            return Err(CallFailure::NoDryRun);
        }
        let not_answered = |reason: String| CallFailure::NotAnswered(reason);
        let Some(version) = hook.review else {
            return Err(not_answered(
                "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, \
                 v1beta1)"
                    .to_owned(),
            ));
        };
        let uid = request.server.random.uid();
        let names = (&self.invocation.resource, &self.invocation.kind);
        let review = version.request(&uid, &request.attributes, names, self.objects);
        let body = review.to_string().into_bytes();
        let answered = webhooks::post(request.server, &hook.client, hook.timeout, body).await;
        let answer = answered
            .and_then(|body| decode(&body, version.api_version()).map_err(PostError::Call))
            .map_err(|error| match error {
                PostError::Client(reason) => format!("could not get REST client: {reason}"),
                PostError::Call(reason) => format!("failed to call webhook: {reason}"),
            })
            .map_err(not_answered)?;
        let response = version
            .read_response(&uid, self.mutates, hook, &answer)
            .map_err(|error| not_answered(format!("received invalid webhook response: {error}")))?;
        // Before the decision: annotations and warnings of a denial reach the audit log and the client too.
        for (key, value) in response.annotations {
            request.annotate(key, value);
        }
        for warning in response.warnings {
            request.warnings.add(warning);
        }
        if let Some(denial) = response.denial {
            return Err(CallFailure::Denied(denial));
        }
        if response.patch.is_empty() {
            return Ok(None);
        }
        let patch = Patch::json(&response.patch).map_err(|error| {
            not_answered(format!(
                "received undecodable patch in webhook response: {error}"
            ))
        })?;
        match response.patch_type.as_str() {
            "JSONPatch" => Ok(Some(patch)),
            other => Err(not_answered(format!("unsupported patch type {other:?}"))),
        }
    }

    /// Returns the answer to the client, `None` if the request goes on all the same.
    pub(super) fn refusal(&self, failure: CallFailure) -> Option<ApiError> {
        let name = &self.hook.name;
        match failure {
            CallFailure::Denied(denial) => Some(ApiError::denied_by_webhook(&denial)),
            CallFailure::NoDryRun => {
                let reason = format!("admission webhook {name:?} does not support dry run");
                Some(ApiError::bad_request(reason))
            }
            CallFailure::NotAnswered(reason) => {
                let reason = format!("failed calling webhook {name:?}: {reason}");
                tracing::warn!("{reason}");
                let is_fatal = self.hook.failure_policy == FailurePolicy::Fail;
                is_fatal.then(|| ApiError::internal_error(reason))
            }
        }
    }
}

/// The type into which Go reads the version and kind of a document.
const HEAD: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
    \"json:\\\"kind,omitempty\\\"\" }";

/// Parses an answer: an AdmissionReview of the version that was sent.
fn decode(body: &[u8], wanted: &str) -> Result<Value, String> {
    let malformed =
        |reason: String| format!("couldn't get version/kind; json parse error: {reason}");
    if body.is_empty() {
        let what = "status code: 200 and content type: application/json";
        return Err(format!("0-length response with {what}"));
    }
    // Go's decoder takes YAML as well as JSON, whatever the content type.
    let mut review = Document::yaml(body).map_err(malformed)?.value;
    if !review.is_object() {
        return Err(malformed(go_json::type_error(&review, HEAD)));
    }
    // Go's decoder takes what was asked for as the default.
    for (member, default) in [("kind", "AdmissionReview"), ("apiVersion", wanted)] {
        if review[member].as_str().unwrap_or_default().is_empty() {
            review[member] = default.into();
        }
    }
    let text = |member: &str| review[member].as_str().unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if kind != "AdmissionReview" || !version.starts_with("admission.k8s.io/") {
        return Err(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \
             \"k8s.io/apiserver/pkg/util/webhook/client.go:71\""
        ));
    }
    if version != wanted {
        let short = |version: &str| version.rsplit('/').next().unwrap_or_default().to_owned();
        return Err(format!(
            "converting ({}.AdmissionReview) to ({}.AdmissionReview): unknown conversion",
            short(version),
            short(wanted)
        ));
    }
    Ok(review)
}
