//! Authenticates tokens with the API server.

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

use crate::answers::Answers;
use crate::error::AuthError;
use crate::rate::Rate;
use crate::user::User;

/// How long an answer is used by default.
const TTL: Duration = Duration::from_secs(60);
/// The longest time for which a token is refused without another review.
const REFUSED_TTL: Duration = Duration::from_secs(10);
/// The maximum number of concurrent reviews: of known tokens, and of unknown ones.
const CONCURRENCY: usize = 16;
/// How many unknown tokens are reviewed by default.
const UNKNOWN_TOKENS: Rate = Rate::new(100, Duration::from_secs(2));
/// The timeout of a review.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The message for a refused token.
const REFUSED: &str = "the token is unknown, expired, revoked, or for another audience";
/// The message for a failed review.
const UNVERIFIED: &str = "the token cannot be verified now; try again";

/// Authenticates bearer tokens with `TokenReview`s of the API server.
///
/// The program needs the verb `create` for `tokenreviews.authentication.k8s.io`. An answer is used for its
/// [TTL](Self::with_ttl), 60 seconds by default: a revoked token works for that long. A refusal is used for 10 seconds,
/// or for the TTL if that is shorter. If a review fails or takes more than 10 seconds, the result is
/// [`AuthError::Unavailable`], and nothing is cached.
///
/// Anybody can send invalid tokens, so tokens that were not accepted in the last hour are reviewed at a
/// [rate](Self::with_unknown_tokens), 50 per second by default, and further ones get [`AuthError::Busy`]. Accepted
/// tokens are not affected as long as they are among the 1,000 that are cached.
///
/// Tokens are cached as salted SHA-256 hashes, at most 1,000 of them, and never appear in logs and errors. Clones share
/// the cache.
///
/// ```no_run
/// use std::time::Duration;
/// use lariat_http::TokenReviews;
///
/// # fn example(client: kube::Client) {
/// let reviews = TokenReviews::new(client).with_ttl(Duration::from_secs(10));
/// # let _ = reviews; }
/// ```
#[derive(Clone)]
pub struct TokenReviews {
    /// Sends the reviews.
    reviews: Api<TokenReview>,
    /// The accepted audiences; empty for the API server's.
    audiences: Vec<String>,
    /// How long an answer is used.
    ttl: Duration,
    /// The salt of the hashes, random for each process.
    salt: [u8; 16],
    /// The answers by hash of the token.
    known: Arc<Answers<Hash, User>>,
    /// Limits the concurrent reviews of tokens that were accepted before.
    permits: Arc<Semaphore>,
    unknown: Arc<Unknown>,
}

/// The reviews of tokens that were not accepted before.
struct Unknown {
    permits: Semaphore,
    rate: Rate,
    /// The time at which all requests of the rate are allowed again.
    full: Mutex<Option<std::time::Instant>>,
}

impl Unknown {
    fn new(rate: Rate) -> Arc<Self> {
        Arc::new(Self {
            permits: Semaphore::new(CONCURRENCY),
            rate,
            full: Mutex::default(),
        })
    }

    fn spend(&self) -> Result<(), AuthError> {
        let (now, mut full) = (Instant::now().into_std(), self.full.lock());
        let after = self.rate.wait(*full, 1, now);
        if !after.is_zero() {
            return Err(AuthError::Busy { after });
        }
        *full = Some(self.rate.spend(*full, now));
        Ok(())
    }
}

/// A salted hash of a token.
type Hash = [u8; 32];

impl TokenReviews {
    /// Creates reviews that are sent with this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            reviews: Api::all(client),
            audiences: Vec::new(),
            ttl: TTL,
            salt: std::array::from_fn(|_| fastrand::u8(..)),
            known: Arc::new(Answers::new()),
            permits: Arc::new(Semaphore::new(CONCURRENCY)),
            unknown: Unknown::new(UNKNOWN_TOKENS),
        }
    }

    /// Sets how long an answer is used (default: 60 seconds).
    ///
    /// The time counts from the moment at which the review is sent. With zero, every request is reviewed.
    #[must_use]
    pub fn with_ttl(self, ttl: Duration) -> Self {
        let known = Arc::new(Answers::new());
        Self { ttl, known, ..self }
    }

    /// Sets how many unknown tokens are reviewed in a time (default: 100 in 2 s).
    ///
    /// The tokens of all clients count together. Zero counts as one.
    #[must_use]
    pub fn with_unknown_tokens(self, reviews: u32, per: Duration) -> Self {
        let unknown = Unknown::new(Rate::new(reviews, per));
        Self { unknown, ..self }
    }

    /// Accepts only tokens for one of these audiences (default: the API server's).
    #[must_use]
    pub fn with_audiences(self, audiences: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let audiences = audiences.into_iter().map(Into::into).collect();
        let known = Arc::new(Answers::new());
        Self {
            audiences,
            known,
            ..self
        }
    }

    /// Returns the client that sends the reviews.
    #[must_use]
    pub fn client(&self) -> Client {
        self.reviews.clone().into_client()
    }

    /// Returns the user of a token.
    ///
    /// # Errors
    ///
    /// [`AuthError::Unauthenticated`] if the API server refuses the token, [`AuthError::Unavailable`] if the review
    /// failed, [`AuthError::Busy`] if too many unknown tokens were sent.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the review.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use http::HeaderMap;
    /// use lariat_http::{AuthError, TokenReviews, User, bearer};
    ///
    /// async fn authenticate(reviews: &TokenReviews, headers: &HeaderMap) -> Result<User, AuthError> {
    ///     reviews.user(bearer(headers)?).await
    /// }
    /// ```
    pub async fn user(&self, token: &str) -> Result<User, AuthError> {
        let hash = self.hash(token);
        if let Some(known) = self.known.get(&hash) {
            return accepted(known);
        }
        let permits = if self.known.was_accepted(&hash) {
            &self.permits
        } else {
            // Before the wait for a permit, whose length would have no bound.
            self.unknown.spend()?;
            &self.unknown.permits
        };
        // The semaphore is never closed.
        let _permit = permits.acquire().await.ok();
        // Another request with the same token may have been reviewed while this one waited.
        if let Some(known) = self.known.get(&hash) {
            return accepted(known);
        }
        let asked = Instant::now();
        let user = self.review(token).await?.map(User::from);
        let ttl = match user {
            Some(_) => self.ttl,
            None => self.ttl.min(REFUSED_TTL),
        };
        self.known.put(hash, user.clone(), asked + ttl);
        accepted(user)
    }

    /// Returns the salted hash of a token.
    fn hash(&self, token: &str) -> Hash {
        let mut hasher = Sha256::new();
        hasher.update(self.salt);
        hasher.update(token.as_bytes());
        hasher.finalize().into()
    }

    /// Sends a review; `None` if the API server refuses the token.
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
        let unavailable = || AuthError::Unavailable(UNVERIFIED.to_owned());
        let review = match time::timeout(TIMEOUT, asked).await {
            Ok(Ok(review)) => review,
            Ok(Err(error)) => {
                let error = lariat_core::describe(&error);
                // The API server should not repeat the token in an error. If it does, the token must not get into the
                // log.
                let error = error.replace(token, "…");
                tracing::warn!(error, "a TokenReview failed");
                return Err(unavailable());
            }
            Err(_) => {
                tracing::warn!("a TokenReview timed out");
                return Err(unavailable());
            }
        };
        let status = review.status.unwrap_or_default();
        // An API server that does not know audiences returns none. The token may then be for another program, so it is
        // refused.
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

/// Returns the user, or the error of a refused token.
fn accepted(user: Option<User>) -> Result<User, AuthError> {
    user.ok_or_else(|| AuthError::unauthenticated(REFUSED))
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
    use tokio::task::JoinSet;
    use tokio::time;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn reviews() -> (TokenReviews, Cluster) {
        let cluster = Cluster::builder().start().await.unwrap();
        (TokenReviews::new(cluster.client()), cluster)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_from_its_question_on_and_no_longer() {
        let (reviews, cluster) = reviews().await;
        let hash = reviews.hash("token");
        assert!(reviews.user("token").await.is_err());
        assert!(reviews.known.get(&hash).is_some_and(|it| it.is_none()));
        time::advance(REFUSED_TTL).await;
        assert!(reviews.known.get(&hash).is_none());
        // What fails is no answer, and is not kept.
        cluster.faults().partition("");
        let error = reviews.user("token").await.unwrap_err();
        assert!(matches!(error, AuthError::Unavailable(_)), "{error}");
        assert!(reviews.known.get(&hash).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_tokens_are_reviewed_at_a_rate_and_known_ones_always() {
        let user = lariat_cluster::User::new("jane");
        let cluster = Cluster::builder().token_of("good", user).start().await;
        let cluster = cluster.unwrap();
        let reviews = TokenReviews::new(cluster.client()).with_unknown_tokens(10, 10 * SECOND);
        let asked = || cluster.journal().count("create", "tokenreviews");
        reviews.user("good").await.unwrap();
        // From now on its answer has expired, and each use is reviewed again.
        time::advance(TTL).await;
        let mut flood = JoinSet::new();
        for number in 0..100 {
            let reviews = reviews.clone();
            flood.spawn(async move { reviews.user(&format!("bad-{number}")).await });
        }
        let results = flood.join_all().await;
        let is_busy = |it: &&Result<User, AuthError>| matches!(it, Err(AuthError::Busy { .. }));
        assert_eq!(results.iter().filter(is_busy).count(), 90);
        assert_eq!(asked(), 11);
        assert_eq!(reviews.user("good").await.unwrap().name(), "jane");
        assert_eq!(asked(), 12);
        let busy = reviews.user("other").await.unwrap_err();
        assert_eq!(
            busy.to_string(),
            "too many unknown tokens were sent; try again in 2 s"
        );
        // A refusal that is known costs nothing.
        let refused = reviews.user("bad-0").await.unwrap_err();
        assert!(
            matches!(refused, AuthError::Unauthenticated(_)),
            "{refused}"
        );
        time::advance(SECOND).await;
        let refused = reviews.user("other").await.unwrap_err();
        assert!(
            matches!(refused, AuthError::Unauthenticated(_)),
            "{refused}"
        );
        assert_eq!(asked(), 13);
    }

    #[tokio::test]
    async fn tokens_are_neither_kept_nor_shown() {
        let (reviews, cluster) = reviews().await;
        let refused = reviews.user("my-secret-token").await.unwrap_err();
        reviews.known.clear();
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
