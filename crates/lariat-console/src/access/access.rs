//! Who may use the console, and for what.

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use lariat_http::{AuthError, TokenReviews, UrlReviews, User, bearer, is_same};

/// Who may use the console.
#[derive(Clone, Default)]
pub(crate) enum Access {
    /// Everyone, if the address is a loopback address, and else no one.
    #[default]
    OnThisMachine,
    Everyone,
    /// Who has this token.
    Token(Arc<str>),
    /// Whom the API server knows and allows.
    Reviews(Box<Reviews>),
}

/// The reviews of users.
#[derive(Clone)]
pub(crate) struct Reviews {
    tokens: TokenReviews,
    urls: UrlReviews,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    /// To read metrics.
    Metrics,
    /// To look at the console.
    Look,
    /// To act.
    Act,
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The program lets no one in.
    Closed,
    /// There is no valid token.
    Unauthenticated(String),
    /// The user may not do that.
    Forbidden {
        user: String,
        permission: Permission,
    },
    /// It is not known who it is, or what the user may do.
    Unavailable(String),
}

impl Permission {
    /// Returns verb and path, as rules with `nonResourceURLs` have them.
    ///
    /// They are not those of the requests: everyone who is authenticated may `get` `/api/*`, by `system:discovery`.
    pub(crate) fn rule(self) -> (&'static str, &'static str) {
        match self {
            Self::Metrics => ("get", "/metrics"),
            Self::Look => ("get", "/console"),
            Self::Act => ("post", "/console/actions"),
        }
    }
}

impl Access {
    /// Lets in whom the API server knows and allows.
    pub(crate) fn reviews(tokens: TokenReviews) -> Self {
        let urls = UrlReviews::new(tokens.client());
        Self::Reviews(Box::new(Reviews { tokens, urls }))
    }

    /// Returns the user who sends a request, if the user has a permission.
    pub(crate) async fn user(
        &self,
        headers: &HeaderMap,
        is_loopback: bool,
        permission: Permission,
    ) -> Result<User, Denied> {
        match self {
            Self::OnThisMachine if !is_loopback => Err(Denied::Closed),
            Self::OnThisMachine | Self::Everyone => Ok(anonymous()),
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

    /// Returns whether a user who was let in has another permission.
    pub(crate) async fn allows(&self, user: &User, permission: Permission) -> Result<bool, Denied> {
        let Self::Reviews(reviews) = self else {
            return Ok(true);
        };
        let (verb, path) = permission.rule();
        Ok(reviews.urls.allows(user, verb, path).await?)
    }

    /// Returns whether requests need no token, so that pages of other sites could send them.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::OnThisMachine | Self::Everyone)
    }

    /// Returns whether users and their permissions are looked up, so that they may change during a long answer.
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

/// Without the token.
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
