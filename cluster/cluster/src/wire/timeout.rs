//! The parameter `timeout`, which every request may have.

use lariat_apimachinery::go_duration;

use crate::status::ApiError;

/// Checks the time that a request gives itself, which has no other meaning here.
///
/// Source: `parseTimeout` in `k8s.io/apiserver/pkg/endpoints/filters`.
pub(crate) fn check(timeout: Option<&str>) -> Result<(), ApiError> {
    let checked = timeout.map_or(Ok(()), go_duration::check);
    checked.map_err(|reason| {
        ApiError::bad_request(format!(
            "invalid timeout specified in the request URL - {reason}"
        ))
    })
}
