//! AdmissionReviews: what webhooks are asked, and what they answer.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/webhook/request` and `errors`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lariat_core::Gvk;
use serde_json::{Value, json};

use super::attributes::{Attributes, ResourceName};
use super::webhook::Webhook;
use crate::go_text::quoted;
use crate::object::Object;

/// The version of an AdmissionReview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewVersion {
    /// `admission.k8s.io/v1`.
    V1,
    /// `admission.k8s.io/v1beta1`.
    V1Beta1,
}

/// The response of an admission webhook.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AdmissionResponse {
    /// The denial, if it denies the request.
    pub denial: Option<Denial>,
    /// The JSON patch of the object, which may be empty.
    pub patch: Vec<u8>,
    /// The kind of patch, empty where there is none.
    pub patch_type: String,
    /// The warnings for the client.
    pub warnings: Vec<String>,
    /// The audit annotations.
    pub annotations: Vec<(String, String)>,
}

/// The status with which a request is denied.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Denial {
    /// The code, at least 400.
    pub code: u16,
    /// The message for the client.
    pub message: String,
    /// The reason, often empty.
    pub reason: String,
    /// The details, which are null where there are none.
    pub details: Value,
}

/// The error of a malformed answer of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReviewError(String);

impl ReviewVersion {
    /// Parses the name of a version; `None` for an unknown one.
    #[must_use]
    pub fn read(name: &Value) -> Option<Self> {
        match name.as_str()? {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    /// Returns the version as reviews have it.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }

    /// Creates the AdmissionReview of a request.
    #[must_use]
    pub fn request(
        self,
        uid: &str,
        attributes: &Attributes,
        (resource, kind): (&ResourceName, &Gvk),
        (object, old): (Option<&Object>, Option<&Object>),
    ) -> Value {
        let mut request = attributes.json(resource, kind);
        let whole = |object: Option<&Object>| object.cloned().map_or(Value::Null, Value::Object);
        request["uid"] = uid.into();
        request["object"] = whole(object);
        request["oldObject"] = whole(old);
        json!({"kind": "AdmissionReview", "apiVersion": self.api_version(), "request": request})
    }

    /// Reads the answer to the review `uid` of a webhook.
    ///
    /// # Errors
    ///
    /// It is no answer to it.
    pub fn read_response(
        self,
        uid: &str,
        mutates: bool,
        webhook: &Webhook,
        review: &Value,
    ) -> Result<AdmissionResponse, ReviewError> {
        let refuse = |reason: String| Err(ReviewError(reason));
        let response = &review["response"];
        if !response.is_object() {
            return refuse("webhook response was absent".to_owned());
        }
        // `VerifyAdmissionResponse` is lenient with v1beta1, in which old webhooks left these out.
        if self == Self::V1 {
            check_identity(uid, review)?;
            check_patch(mutates, response)?;
        }
        let patch = response["patch"].as_str().unwrap_or_default();
        let Ok(patch) = STANDARD.decode(patch) else {
            return refuse("response.patch is not in base64".to_owned());
        };
        // A patch of a validating webhook was refused above for v1, and is ignored for v1beta1.
        let is_patched = mutates && !patch.is_empty();
        let patch_type = match self {
            Self::V1 => response["patchType"].as_str().unwrap_or_default(),
            // The only type there was in that version.
            Self::V1Beta1 => "JSONPatch",
        };
        let texts = response["warnings"].as_array().into_iter().flatten();
        let notes = response["auditAnnotations"].as_object();
        let notes = notes.into_iter().flatten();
        let note = |(key, value): (&String, &Value)| {
            // The name of the webhook keeps keys of different webhooks apart.
            let key = format!("{}/{key}", webhook.name);
            (key, value.as_str().unwrap_or_default().to_owned())
        };
        Ok(AdmissionResponse {
            // Absent is not allowed.
            denial: (response["allowed"] != true)
                .then(|| Denial::read(&webhook.name, &response["status"])),
            patch: if is_patched { patch } else { Vec::new() },
            patch_type: if is_patched {
                patch_type.to_owned()
            } else {
                String::new()
            },
            warnings: texts.filter_map(Value::as_str).map(str::to_owned).collect(),
            annotations: notes.map(note).collect(),
        })
    }
}

fn check_identity(uid: &str, review: &Value) -> Result<(), ReviewError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let given = text(&review["response"]["uid"]);
    if given != uid {
        let (wanted, given) = (quoted(uid), quoted(&given));
        return Err(ReviewError(format!(
            "expected response.uid={wanted}, got {given}"
        )));
    }
    let (version, kind) = (text(&review["apiVersion"]), text(&review["kind"]));
    // The uid is compared first: a wrong uid means an answer to another request.
    if version != "admission.k8s.io/v1" || kind != "AdmissionReview" {
        return Err(ReviewError(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {version}, \
             Kind={kind}"
        )));
    }
    Ok(())
}

fn check_patch(mutates: bool, response: &Value) -> Result<(), ReviewError> {
    let is_patched = !response["patch"].as_str().unwrap_or_default().is_empty();
    let typed = response["patchType"].as_str();
    let reason = match (mutates, is_patched, typed) {
        (true, true, None) => "webhook returned response.patch but not response.patchType",
        (true, false, Some(_)) => "webhook returned response.patchType but not response.patch",
        // Other unknown types are refused when the patch is applied.
        (true, true, Some("")) => "webhook returned invalid response.patchType of \"\"",
        (false, true, _) => "validating webhook may not return response.patch",
        (false, false, Some(_)) => "validating webhook may not return response.patchType",
        _ => return Ok(()),
    };
    Err(ReviewError(reason.to_owned()))
}

impl Denial {
    /// Reads the status with which a webhook denies a request.
    fn read(webhook: &str, status: &Value) -> Self {
        let text = |member: &str| status[member].as_str().unwrap_or_default().to_owned();
        let denied = format!("admission webhook {} denied the request", quoted(webhook));
        let (message, reason) = (text("message"), text("reason"));
        let code = status["code"]
            .as_u64()
            .and_then(|code| u16::try_from(code).ok());
        Self {
            // `ToStatusErr`: a denial cannot look like a success.
            code: code.filter(|code| *code >= 400).unwrap_or(400),
            message: match (message.as_str(), reason.as_str()) {
                ("", "") => format!("{denied} without explanation"),
                ("", reason) => format!("{denied}: {reason}"),
                (message, _) => format!("{denied}: {message}"),
            },
            reason,
            details: status["details"].clone(),
        }
    }
}
