//! The outer part of a review.

use lariat_core::{StrictObject, without_values};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::answer::Answer;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    api_version: Option<String>,
    kind: Option<String>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
}

/// Reads the request of a review, which must have this version and kind.
///
/// Values are left out of the error, because API servers show it to clients.
pub(crate) fn read<R: DeserializeOwned>(
    body: &[u8],
    api_version: &str,
    kind: &str,
) -> Result<R, Answer> {
    let unreadable = |error: &serde_json::Error| {
        let reason = without_values(&error.to_string());
        Answer::bad_request(format!("the body is not a valid {kind}: {reason}"))
    };
    // Only an object is accepted: serde would read an array as a struct too.
    let StrictObject(envelope) = serde_json::from_slice::<StrictObject<Envelope<'_>>>(body)
        .map_err(|error| unreadable(&error))?;
    let found = (
        envelope.api_version.as_deref().unwrap_or_default(),
        envelope.kind.as_deref().unwrap_or_default(),
    );
    // Another version would have other fields, and its answer would not be understood.
    if found != (api_version, kind) {
        return Err(Answer::bad_request(format!(
            "the body is a review of {:?}, kind {:?}; only {kind} of {api_version} is supported: put {:?} into the \
             review versions of the configuration",
            found.0, found.1, "v1"
        )));
    }
    let Some(request) = envelope.request else {
        return Err(Answer::bad_request(format!("the {kind} has no request")));
    };
    serde_json::from_str(request.get()).map_err(|error| unreadable(&error))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::Value;

    use super::*;

    fn check(body: &str, expected: &str) {
        let refused = read::<Value>(body.as_bytes(), "admission.k8s.io/v1", "AdmissionReview");
        match refused {
            Err(Answer::Refused(StatusCode::BAD_REQUEST, message)) => {
                assert!(message.contains(expected), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_no_review_is_refused_with_what_it_is() {
        check("", "not a valid AdmissionReview: EOF while parsing");
        check("[]", "not a valid AdmissionReview: invalid type");
        check("{", "not a valid AdmissionReview: EOF while parsing");
        check("{}", r#"a review of "", kind """#);
        let old =
            r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{}}"#;
        check(old, r#"a review of "admission.k8s.io/v1beta1""#);
        check(
            old,
            "only AdmissionReview of admission.k8s.io/v1 is supported",
        );
        let empty = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#;
        check(empty, "the AdmissionReview has no request");
    }
}
