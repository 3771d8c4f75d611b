//! What a refusal of the API server means.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use kube::core::Status;

/// The messages of etcd and of its client, which the API server passes on with 500 and without a reason.
const OF_ETCD: [&str; 2] = [
    "etcdserver: request is too large",
    "rpc error: code = ResourceExhausted desc = trying to send message larger than max",
];

/// Returns whether a request was refused because of its size.
///
/// The API server refuses bodies above 3 MiB with 413. etcd refuses smaller ones, by default from 1.5 MiB, which the
/// API server answers with 500. A smaller request is needed; the same one is refused each time.
///
/// ```
/// # let status = |status: &str| serde_json::from_str::<kube::core::Status>(status).unwrap();
/// assert!(lariat::cache::is_too_large(&status(r#"{"code": 413, "reason": "RequestEntityTooLarge"}"#)));
/// let of_etcd = r#"{"code": 500, "message": "etcdserver: request is too large"}"#;
/// assert!(lariat::cache::is_too_large(&status(of_etcd)));
/// let failed = r#"{"code": 500, "message": "etcdserver: request timed out"}"#;
/// assert!(!lariat::cache::is_too_large(&status(failed)));
/// ```
#[must_use]
pub fn is_too_large(status: &Status) -> bool {
    let is_of_etcd = || {
        OF_ETCD
            .iter()
            .any(|message| status.message.starts_with(message))
    };
    status.code == 413 || status.code == 500 && is_of_etcd()
}

/// Returns the delay that the API server requests in an error.
///
/// The delay is `retryAfterSeconds` of the `Status` in the error or in one of its sources; `None` if there is none.
///
/// ```
/// # use std::time::Duration;
/// let status = r#"{"code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 7}}"#;
/// let status: kube::core::Status = serde_json::from_str(status).unwrap();
/// let error = kube::Error::Api(Box::new(status));
/// assert_eq!(lariat::cache::retry_after(&error), Some(Duration::from_secs(7)));
/// ```
#[must_use]
pub fn retry_after(error: &(dyn Error + 'static)) -> Option<Duration> {
    let mut causes = std::iter::successors(Some(error), |each| (**each).source());
    let seconds = causes.find_map(|each| {
        // The source of an error that boxes or shares another one is the box.
        let boxed = each.downcast_ref::<Box<kube::Error>>().map(|each| &**each);
        let shared = each.downcast_ref::<Arc<kube::Error>>().map(|each| &**each);
        match each.downcast_ref().or(boxed).or(shared) {
            Some(kube::Error::Api(status)) => Some(status.details.as_ref()?.retry_after_seconds),
            _ => None,
        }
    });
    let seconds = seconds.filter(|seconds| *seconds > 0)?;
    Some(Duration::from_secs(seconds.into()))
}

/// Returns whether an error means that the object does not exist.
///
/// Code 404 alone does not mean that. An API server also answers 404 if it does not serve the kind or the path, which
/// happens while it starts and has not read its CRDs, and a proxy may answer 404 to every request. If an object is
/// missing, the answer is a `Status` that names the object. This function returns true for such a `Status` only.
///
/// The same `Status` is the answer for a subresource that the kind does not have, and for a namespace that does not
/// exist.
///
/// ```
/// # let error = |status: &str| kube::Error::Api(serde_json::from_str(status).unwrap());
/// let no_pod = r#"{"code": 404, "reason": "NotFound", "details": {"kind": "pods", "name": "web"}}"#;
/// assert!(lariat::cache::is_missing(&error(no_pod)));
/// let no_path = r#"{"code": 404, "reason": "NotFound", "message": "404 page not found"}"#;
/// assert!(!lariat::cache::is_missing(&error(no_path)));
/// ```
#[must_use]
pub fn is_missing(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let details = status.details.as_ref();
    let names_one = details.is_some_and(|details| !details.name.is_empty());
    status.code == 404 && status.reason == "NotFound" && names_one
}
