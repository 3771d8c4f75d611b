//! Authentication of requests.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::HeaderMap;
use lariat_http::{AuthError, TokenReviews, bearer};

use crate::access::User;

type Check = dyn Fn(&HeaderMap) -> BoxFuture<'static, Result<User, AuthError>> + Send + Sync;

/// How requests are authenticated.
#[derive(Clone)]
pub(super) enum Auth {
    /// Not configured, so every request is refused.
    Unset,
    Open(User),
    Reviews(Box<TokenReviews>),
    Function(Arc<Check>),
}

impl Auth {
    /// Accepts every request, as the API server's anonymous user.
    pub(super) fn open() -> Self {
        Self::Open(User::new("system:anonymous").group("system:unauthenticated"))
    }

    pub(super) fn function<F, Fut>(check: F) -> Self
    where
        F: Fn(&HeaderMap) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<User, AuthError>> + Send + 'static,
    {
        Self::Function(Arc::new(move |headers| Box::pin(check(headers))))
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// Returns the user that sent a request.
    pub(super) async fn user(&self, headers: &HeaderMap) -> Result<User, AuthError> {
        match self {
            // Closed by default: a service that was never configured must not show Secrets.
            Self::Unset => Err(AuthError::unauthenticated(
                "the service has no authentication: configure one, or open the service to everyone",
            )),
            Self::Open(user) => Ok(user.clone()),
            Self::Reviews(reviews) => reviews.user(bearer(headers)?).await,
            Self::Function(check) => check(headers).await,
        }
    }
}
