//! The chain of an error's causes, and the effect of each on a retry.

use std::error::Error;
use std::time::Duration;

use kube::core::Status;
use kube::core::response::StatusCause;
use lariat_cache::DecodeError;
use lariat_client::is_too_large;
use lariat_core::{Gvk, ObjectKey};

use super::directive::Directive;

/// An error with its chain of causes.
#[derive(Clone, Copy)]
pub(super) struct ErrorChain<'a>(&'a (dyn Error + 'static));

impl<'a> ErrorChain<'a> {
    pub(super) fn of(error: &'a (dyn Error + 'static)) -> Self {
        Self(error)
    }

    /// Iterates over the error and its causes.
    fn chain(self) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
        std::iter::successors(Some(self.0), |each| (*each).source())
    }

    /// Returns the first directive in the chain that decides whether to retry.
    ///
    /// A directive that only sets a delay is returned if there is no other.
    pub(super) fn directive(self) -> Option<Directive> {
        let all = || self.directives();
        let is_delay = |each: &Directive| matches!(each, Directive::RetryAfter(_));
        let decided = all().find(|each| !is_delay(each));
        decided.or_else(|| all().next())
    }

    /// Returns the delay of the first `RetryAfter` in the chain.
    pub(super) fn delay(self) -> Option<Duration> {
        self.directives().find_map(|directive| match directive {
            Directive::RetryAfter(delay) => Some(delay),
            _ => None,
        })
    }

    fn directives(self) -> impl Iterator<Item = Directive> {
        self.chain().filter_map(|each| each.downcast_ref().copied())
    }

    /// Returns the object that could not be decoded, if the chain has a decode error.
    pub(super) fn undecodable(self) -> Option<(&'a Gvk, &'a ObjectKey)> {
        DecodeError::object_behind(self.0)
    }

    /// Returns the API server's Status, if the chain has one.
    ///
    /// It is a cause of `kube::Error::Api` rather than part of it, so transparent wrappers do not hide it.
    fn status(self) -> Option<&'a Status> {
        self.chain().find_map(|each| {
            let boxed = each.downcast_ref::<Box<Status>>().map(|each| &**each);
            each.downcast_ref().or(boxed)
        })
    }

    /// Returns whether the error is a conflict: the object has changed since it was read.
    pub(super) fn is_conflict(self) -> bool {
        // The reason, not the code: 409 is also the code of `AlreadyExists`.
        self.status()
            .is_some_and(|status| status.reason == "Conflict")
    }

    /// Returns the least delay that the API server asks for.
    pub(super) fn not_before(self) -> Option<Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }

    /// Returns the Status of a request that the API server would always refuse, if the chain has one.
    pub(super) fn refused_for_good(self) -> Option<&'a Status> {
        let is_for_good = |status: &&Status| {
            is_too_large(status) || status.code == 422 && is_invalid_for_good(status)
        };
        self.status().filter(is_for_good)
    }

    /// Returns `text` without the directive at its end.
    ///
    /// The log line of a failure tells whether it is retried, so the text need not.
    pub(super) fn without_directive(self, text: &str) -> &str {
        match self.directives().next() {
            Some(
                directive @ (Directive::Ignore | Directive::Terminal | Directive::RetrySlowly),
            ) => text
                .strip_suffix(&*format!(": {directive}"))
                .unwrap_or(text),
            _ => text,
        }
    }
}

/// Reasons of a Status cause that depend on the request alone.
///
/// `FieldValueInvalid` and `FieldValueForbidden` are left out: they are also reported for a taken port, an immutable
/// field, and a CRD rule that compares with the present state. The failed test of a JSON patch has no causes at all.
const WRONG_FOR_GOOD: [&str; 5] = [
    "FieldValueRequired",
    "FieldValueNotSupported",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];

/// Returns whether an object would always be refused as invalid.
fn is_invalid_for_good(status: &Status) -> bool {
    // Webhooks and policies report arbitrary causes, and may accept the same request later.
    let is_denied = ["denied the request", "denied request"]
        .iter()
        .any(|words| status.message.contains(words));
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    // Whether a name is valid depends on the name alone.
    let is_wrong_for_good = |cause: &StatusCause| {
        WRONG_FOR_GOOD.contains(&&*cause.reason) || cause.field == "metadata.name"
    };
    !is_denied && causes.any(is_wrong_for_good)
}
