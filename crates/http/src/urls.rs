//! Authorizes users for URLs with the API server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use tokio::sync::Semaphore;
use tokio::time::{self, Instant};

use crate::answers::Answers;
use crate::error::AuthError;
use crate::user::User;

/// How long a permission is used.
const TTL: Duration = Duration::from_secs(60);
/// How long a denial is used.
const DENIED_TTL: Duration = Duration::from_secs(10);
/// The maximum number of reviews at the same time.
const CONCURRENCY: usize = 16;
/// The timeout of a review.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The message for a failed review.
const UNKNOWN: &str = "the access of the user cannot be checked now; try again";

/// Authorizes users for URLs with `SubjectAccessReview`s of the API server.
///
/// RBAC rules name such URLs in `nonResourceURLs`. The program needs the verb `create` for
/// `subjectaccessreviews.authorization.k8s.io`. A permission is used for 60 seconds, a denial for 10 seconds. If a
/// review fails or takes more than 10 seconds, the result is an error, and nothing is cached.
///
/// Clones share the cache of at most 1,000 answers.
#[derive(Clone)]
pub struct UrlReviews {
    /// Sends the reviews.
    reviews: Api<SubjectAccessReview>,
    /// The answers.
    known: Arc<Answers<Question, ()>>,
    /// Limits the concurrent reviews.
    permits: Arc<Semaphore>,
}

/// The user, the verb and the path.
type Question = (User, &'static str, &'static str);

impl UrlReviews {
    /// Creates reviews that are sent with this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            reviews: Api::all(client),
            known: Arc::new(Answers::new()),
            permits: Arc::new(Semaphore::new(CONCURRENCY)),
        }
    }

    /// Returns whether a user may access a URL.
    ///
    /// `verb` is the HTTP method in lower case, as in RBAC rules.
    ///
    /// # Errors
    ///
    /// [`AuthError::Unavailable`] if the review failed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the review.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lariat_http::{AuthError, UrlReviews, User};
    ///
    /// async fn may_scrape(reviews: &UrlReviews, user: &User) -> Result<bool, AuthError> {
    ///     reviews.allows(user, "get", "/metrics").await
    /// }
    /// ```
    pub async fn allows(
        &self,
        user: &User,
        verb: &'static str,
        path: &'static str,
    ) -> Result<bool, AuthError> {
        // An answer holds for all tokens of the user.
        let question = (user.clone().without_credential(), verb, path);
        if let Some(known) = self.known.get(&question) {
            return Ok(known.is_some());
        }
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await.ok();
        if let Some(known) = self.known.get(&question) {
            return Ok(known.is_some());
        }
        let asked = Instant::now();
        let is_allowed = self.review(&question).await?;
        let ttl = if is_allowed { TTL } else { DENIED_TTL };
        let answer = is_allowed.then_some(());
        self.known.put(question, answer, asked + ttl);
        Ok(is_allowed)
    }

    /// Sends a review.
    async fn review(&self, (user, verb, path): &Question) -> Result<bool, AuthError> {
        let attributes = NonResourceAttributes {
            path: Some((*path).to_owned()),
            verb: Some((*verb).to_owned()),
        };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                non_resource_attributes: Some(attributes),
                ..user.review_spec()
            },
            ..SubjectAccessReview::default()
        };
        let params = PostParams::default();
        let error = match time::timeout(TIMEOUT, self.reviews.create(&params, &review)).await {
            Ok(Ok(review)) => {
                let status = review.status.unwrap_or_default();
                // Both may be set if one authorizer allows and another denies; the denial counts.
                return Ok(status.allowed && status.denied != Some(true));
            }
            Ok(Err(error)) => lariat_core::describe(&error),
            Err(_) => format!("no answer within {TIMEOUT:?}"),
        };
        tracing::warn!(error, "a SubjectAccessReview failed");
        Err(AuthError::Unavailable(UNKNOWN.to_owned()))
    }
}

impl fmt::Debug for UrlReviews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlReviews").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lariat_cluster::Cluster;

    use super::*;

    #[tokio::test]
    async fn a_new_token_of_a_user_causes_no_new_review() {
        let cluster = Cluster::builder().rbac().start().await.unwrap();
        let reviews = UrlReviews::new(cluster.client());
        for number in 0..5 {
            let token = format!("JTI={number}");
            let user = User::new("system:serviceaccount:shop:robot")
                .extra("authentication.kubernetes.io/credential-id", [token])
                .extra("authentication.kubernetes.io/pod-name", ["robot-0"]);
            assert!(!reviews.allows(&user, "get", "/metrics").await.unwrap());
        }
        let other = User::new("system:serviceaccount:shop:robot")
            .extra("authentication.kubernetes.io/pod-name", ["robot-1"]);
        assert!(!reviews.allows(&other, "get", "/metrics").await.unwrap());
        let asked = cluster.journal().count("create", "subjectaccessreviews");
        assert_eq!(asked, 2);
    }
}
