//! Requests to the admin endpoint, and their answers.

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::status::ApiError;
use crate::store::NotDurable;
use crate::wire::query::Query;
use crate::wire::reply::Reply;

/// A request to the endpoint.
#[derive(Debug)]
pub(crate) struct AdminRequest {
    pub(crate) method: Method,
    /// The path behind the prefix.
    pub(crate) path: Vec<String>,
    pub(crate) query: Query,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

impl AdminRequest {
    /// Refuses every method but one.
    pub(super) fn only(&self, method: &Method) -> Result<(), ApiError> {
        if self.method == *method {
            Ok(())
        } else {
            Err(ApiError::method_not_allowed())
        }
    }

    /// Refuses a change whose content type is not JSON.
    ///
    /// The types that a web page may send to another site without asking it are not.
    pub(super) fn check_media_type(&self) -> Result<(), ApiError> {
        let media = self.content_type.split(';').next().unwrap_or_default();
        let is_json = media.trim().eq_ignore_ascii_case("application/json");
        let has_none = self.content_type.is_empty() && self.body.is_empty();
        if is_json || has_none || self.method == Method::GET {
            Ok(())
        } else {
            Err(ApiError::unsupported_media_type("application/json"))
        }
    }

    /// Reads the body; the error names the member that is wrong.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        let mut json = serde_json::Deserializer::from_slice(&self.body);
        let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let (path, reason) = (error.path().to_string(), error.inner());
            match path.as_str() {
                "." => ApiError::bad_request(reason.to_string()),
                path => ApiError::bad_request(format!("{path}: {reason}")),
            }
        })?;
        let end = json.end();
        end.map_err(|error| ApiError::bad_request(error.to_string()))?;
        Ok(read)
    }
}

pub(super) fn reply(code: StatusCode, document: &impl Serialize) -> Reply {
    let json = serde_json::to_vec(document).expect("what is answered here is JSON");
    Reply::json(code, json)
}

pub(super) fn done() -> Reply {
    reply(StatusCode::OK, &json!({}))
}

pub(super) fn unsaved(error: &NotDurable) -> ApiError {
    ApiError::internal(error.to_string())
}
