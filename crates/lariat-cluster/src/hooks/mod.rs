//! Calls of webhooks, over HTTPS.

#[cfg_attr(not(feature = "webhooks"), path = "caller_off.rs")]
mod caller;
#[cfg(feature = "webhooks")]
mod services;
#[cfg(feature = "webhooks")]
mod verifier;

pub(crate) use caller::{IS_BUILT, post};
