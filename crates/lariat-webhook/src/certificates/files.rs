//! Certificates from files, which another program replaces.

use std::path::{Path, PathBuf};

use tokio::fs;

use super::error::CertificateError;
use super::pair::Pair;

/// The files of a certificate, its key and the authority.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    /// The file may be missing.
    pub(super) authority: Option<PathBuf>,
}

/// The content of the files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Option<String>,
}

impl Files {
    /// Reads all files.
    ///
    /// Links are followed: the kubelet updates a mounted Secret by swapping a symbolic link, so a read may see files of
    /// two versions. Such a pair does not belong together, and the next read finds the new one.
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

/// Reads the authority, if the file exists and is not empty.
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
