//! The errors of certificates.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Certificates cannot be loaded, made or stored. No error contains a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Certificate and key are no PEM, or do not belong together.
    #[error("the certificate and the key of {from} cannot be used: {reason}")]
    Unusable {
        /// Where they are from.
        from: String,
        /// What is wrong.
        reason: String,
    },
    /// A certificate cannot be made.
    #[error("a certificate for {names} cannot be made: {reason}")]
    Generate {
        /// The names it is for.
        names: String,
        /// What is wrong.
        reason: String,
    },
    /// Certificates would have expired as soon as they are made.
    #[error(
        "certificates cannot be made for {0:?}: set `Certificates::validity` to a second at least"
    )]
    Validity(Duration),
    /// The Secret belongs to another program.
    #[error(
        "the Secret {0} was not made by webhooks and is left alone: delete it, or keep the certificates in another one"
    )]
    Foreign(String),
    /// The Secret cannot be read or written.
    #[error("the Secret {secret} with the certificates cannot be used")]
    Api {
        /// Namespace and name of the Secret.
        secret: String,
        /// The cause.
        source: Box<kube::Error>,
    },
    /// Others changed the Secret at the same time, again and again.
    #[error("the Secret {0} with the certificates is changed by others all the time")]
    Contended(String),
}

impl CertificateError {
    pub(super) fn api(secret: &str, source: kube::Error) -> Self {
        Self::Api {
            secret: secret.to_owned(),
            source: Box::new(source),
        }
    }
}
