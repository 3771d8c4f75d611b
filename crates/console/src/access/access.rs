//! Authentication and authorisation of requests.

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use lariat_http::{AuthError, TokenReviews, UrlReviews, User, bearer, is_same};

/// The users who may use the console.
#[derive(Clone, Default)]
pub(crate) enum Access {
    /// Everyone if the address is a loopback address, and no one otherwise.
    #[default]
    OnThisMachine,
    /// Everyone.
    Everyone,
    /// Users with this token.
    Token(Arc<str>),
    /// Users whom the API server authenticates and authorises.
    Reviews(Box<Reviews>),
}

/// Reviews of users by the API server.
#[derive(Clone)]
pub(crate) struct Reviews {
    tokens: TokenReviews,
    urls: UrlReviews,
}

/// The permission that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    /// To read metrics.
    Metrics,
    /// To read the console.
    Look,
    /// To perform actions.
    Act,
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The program allows no access on its address.
    Closed,
    /// There is no valid token.
    Unauthenticated(String),
    /// The user does not have the permission.
    Forbidden {
        user: String,
        permission: Permission,
    },
    /// The API server cannot review the user.
    Unavailable(String),
}

impl Permission {
    /// Returns the verb and the path for RBAC rules with `nonResourceURLs`.
    ///
    /// The paths differ from those of the requests: `system:discovery` allows every authenticated user to `get`
    /// `/api/*`.
    pub(crate) fn rule(self) -> (&'static str, &'static str) {
        match self {
            Self::Metrics => ("get", "/metrics"),
            Self::Look => ("get", "/console"),
            Self::Act => ("post", "/console/actions"),
        }
    }
}

impl Access {
    /// Allows access to users whom the API server authenticates and authorises.
    pub(crate) fn reviews(tokens: TokenReviews) -> Self {
        let urls = UrlReviews::new(tokens.client());
        Self::Reviews(Box::new(Reviews { tokens, urls }))
    }

    /// Returns the user of a request, if the user has a permission.
    pub(crate) async fn user(
        &self,
        headers: &HeaderMap,
        is_loopback: bool,
        permission: Permission,
    ) -> Result<User, Denied> {
        match self {
            Self::OnThisMachine if !is_loopback => Err(Denied::Closed),
            Self::OnThisMachine | Self::Everyone => Ok(anonymous()),
            // In constant time, so that the time of the response reveals nothing about the token.
            // A name for the log of actions, since a shared token says nothing about who used it.
            Self::Token(expected) if is_same(bearer(headers)?, expected) => Ok(User::new("token")),
            Self::Token(_) => Err(Denied::Unauthenticated("the token is wrong".to_owned())),
            Self::Reviews(reviews) => {
                let user = reviews.tokens.user(bearer(headers)?).await?;
                if self.allows(&user, permission).await? {
                    return Ok(user);
                }
                let user = user.name().to_owned();
                Err(Denied::Forbidden { user, permission })
            }
        }
    }

    /// Returns whether an authenticated user has another permission.
    pub(crate) async fn allows(&self, user: &User, permission: Permission) -> Result<bool, Denied> {
        let Self::Reviews(reviews) = self else {
            // Only reviews distinguish permissions; the other ways of access allow everything.
            return Ok(true);
        };
        let (verb, path) = permission.rule();
        Ok(reviews.urls.allows(user, verb, path).await?)
    }

    /// Returns whether requests need no token.
    ///
    /// Without a token, a page of another site could send requests from a user's browser.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::OnThisMachine | Self::Everyone)
    }

    /// Returns whether permissions may change while a response is being sent.
    pub(crate) fn is_reviewed(&self) -> bool {
        matches!(self, Self::Reviews(_))
    }
}

fn anonymous() -> User {
    User::new("system:anonymous").group("system:unauthenticated")
}

impl From<AuthError> for Denied {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Unauthenticated(why) => Self::Unauthenticated(why),
            error => Self::Unavailable(error.to_string()),
        }
    }
}

// Without the token.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OnThisMachine => "OnThisMachine",
            Self::Everyone => "Everyone",
            Self::Token(_) => "Token",
            Self::Reviews(_) => "Reviews",
        })
    }
}
