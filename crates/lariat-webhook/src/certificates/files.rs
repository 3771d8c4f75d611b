//! Certificates from files, which others replace.

use std::path::{Path, PathBuf};

use tokio::fs;

use super::error::CertificateError;
use super::pair::Pair;

/// The files of a certificate, its key, and the authority.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    /// It need not exist.
    pub(super) authority: Option<PathBuf>,
}

/// What was in the files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Option<String>,
}

impl Files {
    /// Reads all files, following links: a mounted Secret is replaced by swapping one.
    pub(super) async fn read(&self) -> Result<Contents, CertificateError> {
        let authority = match &self.authority {
            Some(path) => optional(path).await?,
            None => None,
        };
        Ok(Contents {
            certificate: required(&self.certificate).await?,
            key: required(&self.key).await?,
            authority,
        })
    }

    pub(super) fn pair(&self, contents: &Contents) -> Result<Pair, CertificateError> {
        let from = self.certificate.display().to_string();
        let authority = contents.authority.clone();
        Pair::read(&from, &contents.certificate, &contents.key, authority)
    }
}

async fn required(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let read = fs::read(path).await;
    read.map_err(|source| CertificateError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// Reads the authority; one that is missing or empty is injected by others.
async fn optional(path: &Path) -> Result<Option<String>, CertificateError> {
    match fs::read_to_string(path).await {
        Ok(text) if text.trim().is_empty() => Ok(None),
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(CertificateError::Unreadable {
            path: path.to_owned(),
            source,
        }),
    }
}
