//! The answer to a call.

use http::StatusCode;
use lariat_core::without_credentials;
use serde::Serialize;

/// The answer to a call.
///
/// A review is the answer of a handler. A refusal is a failed call: the API server applies the failure policy, and
/// quotes the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A review with a response, as JSON.
    Review(Vec<u8>),
    /// A failed call, with the reason.
    Refused(StatusCode, String),
}

impl Answer {
    /// Returns the answer with the response of a handler.
    pub(crate) fn review(api_version: &str, kind: &str, response: &impl Serialize) -> Self {
        let review = Envelope {
            api_version,
            kind,
            response,
        };
        match serde_json::to_vec(&review) {
            Ok(body) => Self::Review(body),
            Err(error) => Self::failed(format!("the response cannot be written: {error}")),
        }
    }

    /// Returns the answer to a request that cannot be read.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::Refused(StatusCode::BAD_REQUEST, message.into())
    }

    /// Returns the answer for a handler that failed.
    ///
    /// The status is 500: of all server errors, API servers quote the text of this one only.
    pub(crate) fn failed(message: impl AsRef<str>) -> Self {
        let message = without_credentials(message.as_ref()).into_owned();
        Self::Refused(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a, R> {
    api_version: &'a str,
    kind: &'a str,
    response: &'a R,
}
