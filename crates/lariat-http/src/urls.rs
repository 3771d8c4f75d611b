//! Access of users to URLs, by reviews of the API server.

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

const TTL: Duration = Duration::from_secs(60);
/// The maximum time for which a denial is used without another review.
const DENIED_TTL: Duration = Duration::from_secs(10);
const CONCURRENCY: usize = 16;
const TIMEOUT: Duration = Duration::from_secs(10);

const UNKNOWN: &str = "the access of the user cannot be reviewed now: try again";

/// Authorizes users for URLs by `SubjectAccessReview`s of the API server.
///
/// A URL is what rules call `nonResourceURLs`. The program needs the verb `create` for
/// `subjectaccessreviews.authorization.k8s.io`. An answer is used for 60 seconds, a denial for 10 seconds. If a review
/// fails or takes more than 10 seconds, the access is unknown, and nothing is cached.
///
/// Clones share the cache, which has at most 1,000 answers.
#[derive(Clone)]
pub struct UrlReviews {
    reviews: Api<SubjectAccessReview>,
    known: Arc<Answers<Question, ()>>,
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

    /// Returns whether a user may use a URL.
    ///
    /// `verb` is the method in lower case, as in rules.
    ///
    /// # Errors
    ///
    /// The review failed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the review.
    pub async fn allows(
        &self,
        user: &User,
        verb: &'static str,
        path: &'static str,
    ) -> Result<bool, AuthError> {
        let question = (user.clone(), verb, path);
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
                return Ok(status.allowed && status.denied != Some(true));
            }
            Ok(Err(error)) => lariat_core::describe(&error),
            Err(_) => format!("no answer within {TIMEOUT:?}"),
        };
        tracing::warn!(
            error,
            "a SubjectAccessReview failed; the request is not answered"
        );
        Err(AuthError::Unavailable(UNKNOWN.to_owned()))
    }
}

impl fmt::Debug for UrlReviews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlReviews").finish_non_exhaustive()
    }
}
