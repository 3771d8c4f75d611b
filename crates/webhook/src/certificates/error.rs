//! The errors of certificates.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Certificates cannot be loaded, generated or stored; no error contains a key.
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
    /// Certificate or key are not PEM, or do not belong together.
    #[error("the certificate and the key of {from} cannot be used: {reason}")]
    Unusable {
        /// Their source: a file or a Secret.
        from: String,
        /// What is wrong.
        reason: String,
    },
    /// A certificate cannot be generated.
    #[error("cannot generate a certificate for {names}: {reason}")]
    Generate {
        /// The names that it is for.
        names: String,
        /// What is wrong.
        reason: String,
    },
    /// Certificates would expire as soon as they are generated.
    #[error(
        "certificates cannot be valid for {0:?}: set `Certificates::validity` to at least a second"
    )]
    Validity(Duration),
    /// The Secret contains data of another program.
    #[error(
        "the Secret {0} has data of another program and is not touched: delete it, or use another Secret for the certificates"
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
    /// Other clients change the Secret each time it is written.
    #[error("other clients keep changing the Secret {0} with the certificates")]
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
