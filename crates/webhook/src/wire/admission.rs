//! The request and the response of an AdmissionReview.

use std::collections::BTreeMap;

use k8s_openapi::api::authentication::v1::UserInfo;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::Answer;

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AdmissionRequest {
    pub(crate) uid: String,
    pub(crate) kind: WireKind,
    pub(crate) resource: WireResource,
    pub(crate) sub_resource: Option<String>,
    pub(crate) request_kind: Option<WireKind>,
    pub(crate) name: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) operation: String,
    #[serde(default)]
    pub(crate) user_info: UserInfo,
    pub(crate) object: Option<Box<RawValue>>,
    pub(crate) old_object: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) dry_run: Option<bool>,
    #[serde(default)]
    pub(crate) options: Value,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct WireKind {
    #[serde(default)]
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct WireResource {
    pub(crate) resource: String,
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AdmissionResponse {
    pub(crate) uid: String,
    pub(crate) allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<Value>,
    /// The JSON patch, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) audit_annotations: BTreeMap<String, String>,
}

impl AdmissionRequest {
    pub(crate) fn read(body: &[u8]) -> Result<Self, Answer> {
        super::read(body, API_VERSION, KIND)
    }
}

impl AdmissionResponse {
    pub(crate) fn into_answer(self) -> Answer {
        Answer::review(API_VERSION, KIND, &self)
    }
}
