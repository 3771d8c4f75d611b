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
