//! Calls of webhooks, over HTTPS.

#[cfg_attr(not(feature = "webhooks"), path = "caller_off.rs")]
mod caller;
#[cfg(feature = "webhooks")]
mod services;
#[cfg(feature = "webhooks")]
mod verifier;

pub(crate) use caller::{IS_BUILT, post};

/// The error of a call of a webhook.
#[derive(Debug)]
pub(crate) enum PostError {
    /// Its `clientConfig` makes no client.
    #[cfg_attr(
        not(feature = "webhooks"),
        expect(dead_code, reason = "no client is made")
    )]
    Client(String),
    /// The call failed.
    Call(String),
}

impl PostError {
    /// Returns the reason, whichever of the two failed.
    pub(crate) fn reason(self) -> String {
        match self {
            Self::Client(reason) | Self::Call(reason) => reason,
        }
    }
}
