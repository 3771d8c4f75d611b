//! Recognises requests that are refused because of their size.

use kube::core::Status;

/// The messages of etcd and of its client, which the API server passes on with 500 and without a reason.
const OF_ETCD: [&str; 2] = [
    "etcdserver: request is too large",
    "rpc error: code = ResourceExhausted desc = trying to send message larger than max",
];

/// Returns whether a request was refused because of its size.
///
/// The API server refuses bodies above 3 MiB with 413. etcd refuses smaller ones, by default from 1.5 MiB, which the API
/// server answers with 500. A smaller request is needed; the same one is refused each time.
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
