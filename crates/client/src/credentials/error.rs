//! The error of credentials, and the ways in which they are refused.

use std::error::Error;
use std::iter::successors;

use kube::client::AuthError;
use lariat_core::describe;

use super::exec::ExecError;

/// The error of credentials that could not be obtained; the request was not sent.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CredentialError {
    #[error(transparent)]
    Exec(#[from] ExecError),
    #[error("the credentials of the configuration cannot be used: {0}")]
    Unusable(String),
}

impl CredentialError {
    /// Describes an error of kube's, when credentials are read or renewed.
    pub(super) fn unusable(error: &(dyn Error + 'static)) -> Self {
        let mut causes = successors(Some(error), |&error| error.source());
        let is_command = |error: &(dyn Error + 'static)| {
            matches!(error.downcast_ref(), Some(AuthError::AuthExecRun { .. }))
        };
        // kube's text has the arguments and the output of the command of an auth-provider, which are secrets.
        Self::Unusable(if causes.any(is_command) {
            "the command of the auth-provider fails; kubectl knows none any more, use an exec plugin".to_owned()
        } else {
            describe(error)
        })
    }
}

impl From<kube::Error> for CredentialError {
    fn from(error: kube::Error) -> Self {
        Self::unusable(&error)
    }
}

/// The way in which credentials were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The API server answered 401.
    Unauthorized,
    /// TLS failed, maybe because of a certificate, but not of a token.
    Tls,
}
