//! The errors of webhooks.

use std::io;

use crate::certificates::CertificateError;

/// Webhooks cannot be served, or their configurations cannot be applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// A name cannot be used.
    #[error("the name {name:?} of a webhook cannot be used: {reason}")]
    Name {
        /// The full name.
        name: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// Two webhooks have one path.
    #[error("there are two webhooks at {0}: give one another name")]
    Duplicate(String),
    /// Two policies have one name.
    #[error("there are two policies of the name {0}: give one another name")]
    DuplicatePolicy(String),
    /// A webhook has no rule.
    #[error(
        "the webhook {0} has neither a kind nor a rule: give `Hook::of` a kind, or add a rule by `Hook::rule`"
    )]
    NoRule(String),
    /// API servers would not know where to call.
    #[error(
        "API servers have no way to the webhooks {0}: say where they are by `Webhooks::reached_by`, or install nothing"
    )]
    NoReach(String),
    /// API servers would not call the URL.
    #[error("API servers call no webhooks at {0:?}: the URL has to begin with https:// and a host")]
    Url(String),
    /// The certificates cannot be used.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up for webhooks")]
    Tls(#[source] rustls::Error),
    /// The address cannot be listened on: another program has the port, or the machine lacks the address.
    #[error("webhooks cannot listen on {address}: choose another address")]
    Listen {
        /// The address that was given.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// A configuration was refused, or could not be sent.
    #[error("{kind} {name} cannot be applied")]
    Apply {
        /// The kind of the configuration.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The cause.
        source: Box<kube::Error>,
    },
    /// A configuration that is no longer wanted could not be found or removed.
    #[error("a {kind} of the webhooks {webhooks} that is no longer wanted cannot be removed")]
    Remove {
        /// The kind of the configuration.
        kind: String,
        /// The name of the webhooks.
        webhooks: String,
        /// The cause.
        source: Box<kube::Error>,
    },
}
