//! Authentication of requests.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::{HeaderMap, header};

use super::error::AuthError;
use super::reviews::TokenReviews;
use crate::access::User;

/// The maximum length of a token, in bytes.
const LONGEST_TOKEN: usize = 16 * 1024;

type Check = dyn Fn(&HeaderMap) -> BoxFuture<'static, Result<User, AuthError>> + Send + Sync;

/// How requests are authenticated.
#[derive(Clone)]
pub(super) enum Auth {
    /// Not configured: every request is refused.
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

    /// Returns the user that sends a request.
    pub(super) async fn user(&self, headers: &HeaderMap) -> Result<User, AuthError> {
        match self {
            Self::Unset => Err(AuthError::unauthenticated(
                "the service has no authentication: its program has to configure one, or open it to everyone",
            )),
            Self::Open(user) => Ok(user.clone()),
            Self::Reviews(reviews) => reviews.user(bearer(headers)?).await,
            Self::Function(check) => check(headers).await,
        }
    }
}

/// Returns the bearer token of a request.
fn bearer(headers: &HeaderMap) -> Result<&str, AuthError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(AuthError::unauthenticated(
            "the request needs one Authorization header, with a bearer token",
        ));
    };
    let token = value.to_str().ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        let token = token.trim();
        let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        (scheme.eq_ignore_ascii_case("bearer") && is_token).then_some(token)
    });
    match token {
        Some(token) if token.len() <= LONGEST_TOKEN => Ok(token),
        _ => Err(AuthError::unauthenticated(
            "the Authorization header is not `Bearer` and a token",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_bearer_token_is_taken() {
        let check = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, value.parse().unwrap());
            }
            bearer(&headers).map(str::to_owned).ok()
        };
        assert_eq!(check(&["Bearer abc.def"]).as_deref(), Some("abc.def"));
        assert_eq!(check(&["bearer  abc"]).as_deref(), Some("abc"));
        let long = format!("Bearer {}", "a".repeat(LONGEST_TOKEN + 1));
        for bad in ["Bearer", "Bearer ", "Basic abc", "Bearer a b", "abc", &long] {
            assert_eq!(check(&[bad]), None, "{bad}");
        }
        assert_eq!(check(&[]), None);
        assert_eq!(check(&["Bearer a", "Bearer b"]), None);
    }
}
