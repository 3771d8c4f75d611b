//! The request and the response of a ConversionReview.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::Answer;

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ConversionRequest {
    pub(crate) uid: String,
    #[serde(rename = "desiredAPIVersion")]
    pub(crate) desired: String,
    #[serde(default)]
    pub(crate) objects: Vec<Value>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConversionResponse {
    uid: String,
    result: Value,
    converted_objects: Vec<Value>,
}

impl ConversionRequest {
    pub(crate) fn read(body: &[u8]) -> Result<Self, Answer> {
        super::read(body, API_VERSION, KIND)
    }
}

impl ConversionResponse {
    pub(crate) fn converted(uid: &str, converted_objects: Vec<Value>) -> Self {
        Self {
            uid: uid.to_owned(),
            result: json!({"status": "Success"}),
            converted_objects,
        }
    }

    pub(crate) fn failed(uid: &str, message: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            result: json!({"status": "Failure", "message": message}),
            converted_objects: Vec::new(),
        }
    }

    pub(crate) fn into_answer(self) -> Answer {
        Answer::review(API_VERSION, KIND, &self)
    }
}
