//! The error of webhooks.

use std::io;
use std::time::Duration;

use crate::certificates::CertificateError;

/// Webhooks cannot be served, or their configurations cannot be applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// A name is invalid.
    #[error("the name {name:?} of a webhook is invalid: {reason}")]
    Name {
        /// The full name.
        name: String,
        /// What is wrong with the name.
        reason: &'static str,
    },
    /// Two webhooks have the same path.
    #[error("two webhooks have the path {0}: rename one of them")]
    Duplicate(String),
    /// Two policies have the same name.
    #[error("two policies have the name {0}: rename one of them")]
    DuplicatePolicy(String),
    /// A webhook has no rule.
    #[error(
        "the webhook {0} has neither a kind nor a rule: give `Hook::of` a kind, or add a rule by `Hook::rule`"
    )]
    NoRule(String),
    /// There is no address at which API servers call the webhooks.
    #[error(
        "it is unknown where API servers call the webhooks {0}: set it with `Webhooks::endpoint`"
    )]
    NoReach(String),
    /// API servers would not call the URL.
    #[error(
        "API servers do not call webhooks at {0:?}: the URL must begin with https:// and a host"
    )]
    Url(String),
    /// The certificates cannot be used.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up for webhooks")]
    Tls(#[source] rustls::Error),
    /// The server cannot listen on the address.
    ///
    /// Another program has the port, or the machine does not have the address.
    #[error("webhooks cannot listen on {address}: choose another address")]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// A configuration was refused, or could not be sent.
    #[error("{kind} {name} cannot be applied")]
    Apply {
        /// The kind of the configuration.
        kind: &'static str,
        /// The name of the configuration.
        name: String,
        /// The cause.
        source: Box<kube::Error>,
    },
    /// A configuration that an earlier release has applied could not be read or removed.
    #[error(
        "cannot remove the {kind} {name} of an earlier release: delete it, or allow this program to get and delete it"
    )]
    Remove {
        /// The kind of the configuration.
        kind: String,
        /// The name of the configuration.
        name: String,
        /// The cause.
        source: Box<kube::Error>,
    },
    /// API servers would not accept the certificate, so no configuration is applied.
    #[error("the configurations are not applied: {0}")]
    Certificate(String),
    /// The API server did not answer in time while configurations were applied.
    #[error("the API server did not answer within {0:?}")]
    NoAnswer(Duration),
}
