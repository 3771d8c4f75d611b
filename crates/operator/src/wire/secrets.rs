//! Keeps the API server's messages about Secrets out of errors.
//!
//! These messages, and those of webhooks, may quote values.

use kube::core::Status;
use lariat_core::Gvk;

/// Returns whether a kind is that of Secrets.
pub(crate) fn is_secret(gvk: &Gvk) -> bool {
    gvk.group().is_empty() && gvk.kind() == "Secret"
}

/// Removes the messages from a Status; code, reason and fields are kept.
pub(crate) fn without_words(status: &Status) -> Status {
    let mut status = status.clone();
    "the API server's message is left out, because it may quote the Secret"
        .clone_into(&mut status.message);
    let details = status.details.iter_mut();
    for cause in details.flat_map(|details| &mut details.causes) {
        cause.message.clear();
    }
    status
}

/// Removes the API server's message from the error of a write of a Secret.
///
/// The message about a read quotes no values, and names the missing permission, so it is kept.
pub(crate) fn without_values(verb: &str, gvk: &Gvk, error: kube::Error) -> kube::Error {
    let is_read = matches!(verb, "get" | "list");
    match error {
        kube::Error::Api(status) if is_secret(gvk) && !is_read => {
            kube::Error::Api(Box::new(without_words(&status)))
        }
        error => error,
    }
}
