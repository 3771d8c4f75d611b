//! Errors of reviews about what a user may see.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::Gvk;

use super::verb::Verb;

/// The error of an access that could not be determined; nothing may be shown then.
///
/// Neither the error nor its source contains a token.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The API server did not answer a review, or refused it.
    #[error("whether {whose} may {verb} {kind} is not known: a {review} failed{}", instead(.source, .resource))]
    Review {
        /// `user "jane"`, or `this program`.
        whose: String,
        /// The verb.
        verb: Verb,
        /// The kind.
        kind: Gvk,
        /// The kind of the review.
        review: &'static str,
        /// The plural of the review's kind.
        resource: &'static str,
        /// The error of the API server or the connection.
        source: Arc<kube::Error>,
    },
    /// The API server did not answer a review in time.
    #[error(
        "whether {whose} may {verb} {kind} is not known: a {review} was not answered within {after:?}"
    )]
    Timeout {
        /// `user "jane"`, or `this program`.
        whose: String,
        /// The verb.
        verb: Verb,
        /// The kind.
        kind: Gvk,
        /// The kind of the review.
        review: &'static str,
        /// The timeout.
        after: Duration,
    },
    /// The budget of reviews about the user is spent.
    #[error(
        "whether {whose} may {verb} {kind} is not known: the budget of {reviews} reviews in {per:?} is spent; try again in {} s, or ask about fewer namespaces",
        after.as_secs() + 1
    )]
    Budget {
        /// `user "jane"`.
        whose: String,
        /// The verb.
        verb: Verb,
        /// The kind.
        kind: Gvk,
        /// How many reviews are allowed.
        reviews: u32,
        /// The time in which they are allowed.
        per: Duration,
        /// When to try again.
        after: Duration,
    },
    /// The user has neither a name nor a group.
    #[error(
        "whether a user without name and groups may {verb} {kind} cannot be reviewed: use the user of an authenticated TokenReview"
    )]
    UnknownUser {
        /// The verb.
        verb: Verb,
        /// The kind.
        kind: Gvk,
    },
}

lariat_core::debug_as_description!(AccessError);

impl AccessError {
    /// Returns whether the same question may be answered later.
    ///
    /// It may after a failed connection, when a budget is spent, or while the API server is overloaded. Otherwise the
    /// program lacks the permission to create reviews, or the API server does not serve them.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Review { source, .. } => match &**source {
                kube::Error::Api(status) => status.code >= 500 || status.code == 429,
                _ => true,
            },
            Self::Timeout { .. } | Self::Budget { .. } => true,
            Self::UnknownUser { .. } => false,
        }
    }
}

/// Returns a hint on how to fix the error, if there is one.
fn instead(source: &kube::Error, resource: &str) -> String {
    match source {
        kube::Error::Api(status) if status.code == 403 => {
            format!("; this program needs the verb create for {resource}.authorization.k8s.io")
        }
        _ => String::new(),
    }
}
