//! What the API server says of Secrets stays out of errors: its words, and those of webhooks, may quote values.

use kube::core::Status;
use lariat_core::Gvk;

/// Returns whether a kind is the one of Secrets.
pub(crate) fn is_secret(gvk: &Gvk) -> bool {
    gvk.group().is_empty() && gvk.kind() == "Secret"
}

/// Leaves out what the API server says of a Secret; code, reason and fields stay.
pub(crate) fn without_words(status: &Status) -> Status {
    let mut status = status.clone();
    "what the API server says is left out, since it may quote the Secret"
        .clone_into(&mut status.message);
    let details = status.details.iter_mut();
    for cause in details.flat_map(|details| &mut details.causes) {
        cause.message.clear();
    }
    status
}

/// Leaves out what the API server says of a write of a Secret. What it says of a read quotes nothing, and names the
/// right that is missing.
pub(crate) fn without_values(verb: &str, gvk: &Gvk, error: kube::Error) -> kube::Error {
    let is_read = matches!(verb, "get" | "list");
    match error {
        kube::Error::Api(status) if is_secret(gvk) && !is_read => {
            kube::Error::Api(Box::new(without_words(&status)))
        }
        error => error,
    }
}
