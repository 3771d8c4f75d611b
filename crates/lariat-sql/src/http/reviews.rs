//! Authentication of tokens by the API server.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use kube::Client;
use kube::api::{Api, PostParams};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::{self, Instant};

use super::error::AuthError;
use crate::access::User;

const TTL: Duration = Duration::from_secs(60);
/// The maximum time for which a refused token is refused without another review.
const REFUSED_TTL: Duration = Duration::from_secs(10);
const TOKENS: usize = 1_000;
const CONCURRENCY: usize = 16;
const TIMEOUT: Duration = Duration::from_secs(10);

const REFUSED: &str =
    "the token is invalid: it is unknown, expired or revoked, or for another audience";
const UNKNOWN: &str = "the token cannot be reviewed now: try again";

/// Authenticates bearer tokens by `TokenReview`s of the API server.
///
/// The program needs the verb `create` for `tokenreviews.authentication.k8s.io`. An answer is used for its
/// [TTL](Self::with_ttl) (60 seconds by default): for that long a revoked token still works. A refused token is refused
/// for 10 seconds, or for the TTL if that is shorter. If a review fails or takes more than 10 seconds, the response is
/// 503, and nothing is cached.
///
/// Tokens are cached as salted SHA-256, and never appear in logs and errors. Clones share the cache.
///
/// ```no_run
/// use std::time::Duration;
/// use lariat_sql::http::TokenReviews;
///
/// # fn example(client: kube::Client) {
/// let reviews = TokenReviews::new(client).with_ttl(Duration::from_secs(10));
/// # let _ = reviews; }
/// ```
#[derive(Clone)]
pub struct TokenReviews {
    reviews: Api<TokenReview>,
    audiences: Vec<String>,
    ttl: Duration,
    salt: [u8; 16],
    known: Arc<Mutex<HashMap<Hash, Known>>>,
    permits: Arc<Semaphore>,
}

type Hash = [u8; 32];

/// A cached review.
#[derive(Clone)]
struct Known {
    /// None if the token is refused.
    user: Option<User>,
    until: Instant,
}

impl TokenReviews {
    /// Creates reviews that are sent with this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            reviews: Api::all(client),
            audiences: Vec::new(),
            ttl: TTL,
            salt: std::array::from_fn(|_| fastrand::u8(..)),
            known: Arc::default(),
            permits: Arc::new(Semaphore::new(CONCURRENCY)),
        }
    }

    /// Sets how long an answer is used (default 60 seconds).
    ///
    /// The time counts from the moment the review is sent. With zero each request is reviewed.
    #[must_use]
    pub fn with_ttl(self, ttl: Duration) -> Self {
        let known = Arc::default();
        Self { ttl, known, ..self }
    }

    /// Accepts only tokens for one of these audiences (default: for the API server).
    #[must_use]
    pub fn with_audiences(self, audiences: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let audiences = audiences.into_iter().map(Into::into).collect();
        let known = Arc::default();
        Self {
            audiences,
            known,
            ..self
        }
    }

    /// Returns the user of a token.
    pub(super) async fn user(&self, token: &str) -> Result<User, AuthError> {
        let hash = self.hash(token);
        if let Some(known) = self.known(&hash) {
            return known;
        }
        let permit = self.permits.acquire().await;
        let _permit = permit.expect("the semaphore is never closed");
        // Another request may have reviewed it while this one waited for the permit.
        if let Some(known) = self.known(&hash) {
            return known;
        }
        let asked = Instant::now();
        let user = self.review(token).await?.map(User::from);
        let ttl = match user {
            Some(_) => self.ttl,
            None => self.ttl.min(REFUSED_TTL),
        };
        let until = asked + ttl;
        let known = Known { user, until };
        let answer = known.answer();
        self.remember(hash, known);
        answer
    }

    fn hash(&self, token: &str) -> Hash {
        let mut hasher = Sha256::new();
        hasher.update(self.salt);
        hasher.update(token.as_bytes());
        hasher.finalize().into()
    }

    fn known(&self, hash: &Hash) -> Option<Result<User, AuthError>> {
        let known = self.known.lock().get(hash).cloned()?;
        (Instant::now() < known.until).then(|| known.answer())
    }

    fn remember(&self, hash: Hash, known: Known) {
        let mut all = self.known.lock();
        if all.len() >= TOKENS && !all.contains_key(&hash) {
            let now = Instant::now();
            all.retain(|_, known| now < known.until);
        }
        // A refused token does not displace another one.
        if all.len() >= TOKENS && known.user.is_some() {
            let refused = all.iter().find(|(_, known)| known.user.is_none());
            let oldest = || all.iter().min_by_key(|(_, known)| known.until);
            if let Some(gone) = refused.or_else(oldest).map(|(hash, _)| *hash) {
                all.remove(&gone);
            }
        }
        if all.len() < TOKENS {
            all.insert(hash, known);
        }
    }

    /// Asks the API server; none if it refuses the token.
    async fn review(&self, token: &str) -> Result<Option<UserInfo>, AuthError> {
        let audiences = Some(self.audiences.clone()).filter(|audiences| !audiences.is_empty());
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences,
            },
            ..TokenReview::default()
        };
        let params = PostParams::default();
        let asked = self.reviews.create(&params, &review);
        let unavailable = || AuthError::Unavailable(UNKNOWN.to_owned());
        let review = match time::timeout(TIMEOUT, asked).await {
            Ok(Ok(review)) => review,
            Ok(Err(error)) => {
                let error = lariat_core::describe(&error);
                // The API server should not repeat a token in an error, but it must not get into the log.
                let error = error.replace(token, "…");
                tracing::warn!(error, "a TokenReview failed; the request is not answered");
                return Err(unavailable());
            }
            Err(_) => {
                tracing::warn!(
                    "a TokenReview was not answered in time; the request is not answered"
                );
                return Err(unavailable());
            }
        };
        let status = review.status.unwrap_or_default();
        // An API server without support for audiences returns none: the token may be for another program.
        let is_for_us = self.audiences.is_empty()
            || status
                .audiences
                .unwrap_or_default()
                .iter()
                .any(|audience| self.audiences.contains(audience));
        let has_name = |user: &UserInfo| user.username.as_ref().is_some_and(|it| !it.is_empty());
        let is_good = status.authenticated == Some(true) && is_for_us;
        Ok(status.user.filter(has_name).filter(|_| is_good))
    }
}

impl Known {
    fn answer(&self) -> Result<User, AuthError> {
        let user = self.user.clone();
        user.ok_or_else(|| AuthError::unauthenticated(REFUSED))
    }
}

impl fmt::Debug for TokenReviews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenReviews")
            .field("audiences", &self.audiences)
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lariat_cluster::Cluster;

    use super::*;

    async fn reviews() -> (TokenReviews, Cluster) {
        let cluster = Cluster::builder().start().await.unwrap();
        (TokenReviews::new(cluster.client()), cluster)
    }

    fn known(is_good: bool, seconds: u64) -> Known {
        Known {
            user: is_good.then(|| User::new("jane")),
            until: Instant::now() + Duration::from_secs(seconds),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_known_is_bounded_and_refused_tokens_go_first() {
        let (reviews, _cluster) = reviews().await;
        let hash = |number: usize| reviews.hash(&number.to_string());
        reviews.remember(hash(0), known(false, 30));
        for number in 1..TOKENS {
            reviews.remember(hash(number), known(true, 60));
        }
        // One more refused token does not displace another, and one that is good does.
        reviews.remember(hash(TOKENS), known(false, 60));
        assert!(reviews.known(&hash(TOKENS)).is_none());
        reviews.remember(hash(TOKENS), known(true, 60));
        assert!(reviews.known(&hash(TOKENS)).is_some_and(|it| it.is_ok()));
        assert!(reviews.known(&hash(0)).is_none());
        assert_eq!(reviews.known.lock().len(), TOKENS);
        // What is over makes room for all.
        time::advance(Duration::from_secs(60)).await;
        assert!(reviews.known(&hash(TOKENS)).is_none());
        reviews.remember(hash(0), known(false, 10));
        assert_eq!(reviews.known.lock().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_from_its_question_on_and_no_longer() {
        let (reviews, cluster) = reviews().await;
        let hash = reviews.hash("token");
        assert!(reviews.user("token").await.is_err());
        assert!(reviews.known(&hash).is_some_and(|it| it.is_err()));
        time::advance(REFUSED_TTL).await;
        assert!(reviews.known(&hash).is_none());
        // What fails is no answer, and is not kept.
        cluster.faults().partition("");
        let error = reviews.user("token").await.unwrap_err();
        assert!(matches!(error, AuthError::Unavailable(_)), "{error}");
        assert!(reviews.known(&hash).is_none());
    }

    #[tokio::test]
    async fn tokens_are_neither_kept_nor_shown() {
        let (reviews, cluster) = reviews().await;
        let refused = reviews.user("my-secret-token").await.unwrap_err();
        reviews.known.lock().clear();
        cluster.faults().partition("");
        let failed = reviews.user("my-secret-token").await.unwrap_err();
        let shown = format!("{reviews:?} {refused:?} {refused} {failed:?} {failed}");
        assert!(!shown.contains("my-secret-token"), "{shown}");
        let other = TokenReviews {
            salt: [7; 16],
            ..reviews.clone()
        };
        assert_ne!(other.hash("a"), reviews.hash("a"));
    }
}
