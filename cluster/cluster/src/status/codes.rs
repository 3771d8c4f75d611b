//! The default reasons and messages of status codes.

use http::StatusCode;

/// Returns the machine-readable reason of a code.
pub(super) fn reason(code: StatusCode) -> &'static str {
    match code.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    }
}

/// Returns the text of a code.
///
/// Source: `NewGenericServerResponse` in `k8s.io/apimachinery/pkg/api/errors`.
pub(super) fn message(code: StatusCode) -> &'static str {
    match code.as_u16() {
        401 => "the server has asked for the client to provide credentials",
        403 => "the server does not allow access to the requested resource",
        404 => "the server could not find the requested resource",
        409 => "the server reported a conflict",
        410 => "the requested version is no longer available",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        500 => "an error on the server has prevented the request from succeeding",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request"
        }
        _ => "the server responded with an error",
    }
}
