//! Certificates from files, which another program replaces.

use std::path::{Path, PathBuf};

use tokio::fs;

use super::error::CertificateError;
use super::pair::Pair;
use super::shown::Served;

/// The number of reads after which files that change all the time are taken as they are.
const READS: usize = 5;

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
    /// Reads all files, again until two reads agree.
    ///
    /// The kubelet updates a mounted Secret by swapping a symbolic link between two reads, so a single read may have
    /// files of two versions: a key that does not match its certificate, or a certificate with the old authority.
    pub(super) async fn read(&self) -> Result<Contents, CertificateError> {
        settled(|| self.read_once()).await
    }

    async fn read_once(&self) -> Result<Contents, CertificateError> {
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

    pub(super) fn served(&self, contents: &Contents) -> Result<Served, CertificateError> {
        let from = self.certificate.display().to_string();
        Ok(Served {
            first: Pair::read(&from, &contents.certificate, &contents.key)?,
            others: Vec::new(),
            authority: contents.authority.clone(),
        })
    }
}

/// Reads until two reads in a row agree, at most [`READS`] times; returns the last one.
async fn settled<T: PartialEq, E, F>(mut read: impl FnMut() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut last = read().await?;
    for _ in 1..READS {
        let next = read().await?;
        if next == last {
            break;
        }
        last = next;
    }
    Ok(last)
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::ready;

    use super::{READS, settled};

    /// Reads the given contents one after the other; returns the accepted one and the number of reads.
    async fn read(contents: [&str; READS]) -> (&str, usize) {
        let mut reads = 0;
        let accepted = settled(|| {
            reads += 1;
            ready(Ok::<_, Infallible>(contents[reads - 1]))
        });
        (accepted.await.unwrap(), reads)
    }

    #[tokio::test]
    async fn files_of_two_versions_are_read_again() {
        assert_eq!(read(["old", "old", "", "", ""]).await, ("old", 2));
        assert_eq!(read(["torn", "new", "new", "", ""]).await, ("new", 3));
        assert_eq!(read(["old", "torn", "new", "new", ""]).await, ("new", 4));
    }

    #[tokio::test]
    async fn files_that_change_all_the_time_are_read_a_bounded_number_of_times() {
        assert_eq!(read(["1", "2", "3", "4", "5"]).await, ("5", READS));
    }
}
