//! Where the certificates of a server come from.

use std::path::PathBuf;
use std::time::Duration;

use kube::Client;
use lariat_core::ObjectKey;

use super::error::CertificateError;
use super::files::Files;
use super::keeper::Keeper;
use super::rotation::Rotation;
use super::secret::Shared;

/// Where the certificates of a server come from, and how they are renewed.
///
/// ```
/// use lariat_webhook::Certificates;
///
/// // Where cert-manager's Secret is mounted.
/// let mounted = Certificates::directory("/etc/webhooks");
/// // Made and rotated by the program, in a Secret that its replicas share.
/// let made = Certificates::secret(&"demo/widgets-webhooks".parse()?);
/// # let _ = (mounted, made);
/// # Ok::<(), lariat_core::ParseKeyError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "certificates do nothing until they are served"]
pub struct Certificates {
    source: Source,
    period: Option<Duration>,
    validity: Duration,
    overlap: Duration,
    names: Vec<String>,
}

#[derive(Debug, Clone)]
enum Source {
    Files(Files),
    Secret(ObjectKey),
}

/// How often files are read.
const FILES: Duration = Duration::from_secs(10);
/// How often the Secret is read.
const SECRET: Duration = Duration::from_secs(60);
/// How long a certificate is valid.
const VALIDITY: Duration = Duration::from_secs(90 * 24 * 3600);
/// The shortest validity: certificates know no shorter times.
const SHORTEST: Duration = Duration::from_secs(1);
/// How long the next authority is trusted before it is used.
const OVERLAP: Duration = Duration::from_secs(3600);
/// The least time between two reads.
const LEAST: Duration = Duration::from_millis(10);

impl Certificates {
    /// Takes `tls.crt` and `tls.key` of a directory, where a Secret of cert-manager is mounted.
    ///
    /// If there is a `ca.crt`, it is injected into the configurations; else others have to, such as cert-manager's
    /// injector, by an [annotation](crate::Webhooks::annotate). The files are read every ten seconds. If new files
    /// cannot be used, the old certificate is kept, and the log says so once.
    pub fn directory(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        let files = Files {
            certificate: directory.join("tls.crt"),
            key: directory.join("tls.key"),
            authority: Some(directory.join("ca.crt")),
        };
        Self::new(Source::Files(files))
    }

    /// Takes a certificate and a key from two files; see [`directory`](Self::directory).
    pub fn files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        let (certificate, key) = (certificate.into(), key.into());
        Self::new(Source::Files(Files {
            certificate,
            key,
            authority: None,
        }))
    }

    /// Makes certificates, and keeps them in a Secret that the replicas of a program share.
    ///
    /// Each certificate has an authority of its own, whose key is not kept. When a third of a certificate's time is
    /// left, the next one is made; once its authority is in the configurations, it is trusted for the
    /// [overlap](Self::overlap) before servers show it, and the former one for as long as the certificate is used. If the
    /// configurations cannot be applied, servers keep the old certificate until a hundredth of its time is left. Replicas
    /// agree by the resource version of the Secret.
    ///
    /// A Secret that was not made by webhooks, and is not empty, is left alone.
    pub fn secret(secret: &ObjectKey) -> Self {
        Self::new(Source::Secret(secret.clone()))
    }

    fn new(source: Source) -> Self {
        Self {
            source,
            period: None,
            validity: VALIDITY,
            overlap: OVERLAP,
            names: Vec::new(),
        }
    }

    /// Sets the file of the authority, in PEM, which is injected into the configurations.
    pub fn authority(mut self, path: impl Into<PathBuf>) -> Self {
        if let Source::Files(files) = &mut self.source {
            files.authority = Some(path.into());
        }
        self
    }

    /// Sets how often files (default 10 s) or the Secret (default 60 s) are read; at least 10 ms.
    pub fn period(self, period: Duration) -> Self {
        let period = Some(period.max(LEAST));
        Self { period, ..self }
    }

    /// Sets how long a certificate that is made is valid (default 90 days).
    ///
    /// Less than a second, zero too, is an error when the webhooks are served.
    pub fn validity(self, validity: Duration) -> Self {
        Self { validity, ..self }
    }

    /// Sets how long the next authority is trusted before servers use it (default 1 h).
    ///
    /// The time begins when a replica has applied the configurations with it; without
    /// [`reached_by`](crate::Webhooks::reached_by), when it is made. It should be longer than the [period](Self::period)
    /// of all replicas, and than API servers take to notice a changed configuration. With zero, servers use it at the next
    /// read of the Secret, so calls may fail until API servers have noticed.
    pub fn overlap(self, overlap: Duration) -> Self {
        Self { overlap, ..self }
    }

    /// Adds names or addresses to certificates that are made, beside those of the Service or URL.
    pub fn names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Returns the Secret, if certificates are made.
    pub(crate) fn shared_secret(&self) -> Option<&ObjectKey> {
        match &self.source {
            Source::Secret(key) => Some(key),
            Source::Files(_) => None,
        }
    }

    /// Loads or makes the first certificate, for names beside its own ones.
    ///
    /// The program injects its authority itself if it applies the configurations.
    pub(crate) async fn load(
        self,
        client: Client,
        mut names: Vec<String>,
        injects: bool,
    ) -> Result<Keeper, CertificateError> {
        match self.source {
            Source::Files(files) => Keeper::of_files(files, self.period.unwrap_or(FILES)).await,
            Source::Secret(_) if self.validity < SHORTEST => {
                Err(CertificateError::Validity(self.validity))
            }
            Source::Secret(key) => {
                names.extend(self.names);
                if names.is_empty() {
                    names.push("localhost".to_owned());
                }
                names.sort();
                names.dedup();
                let rotation = Rotation {
                    names,
                    validity: self.validity,
                    overlap: self.overlap,
                    injects,
                };
                let shared = Shared {
                    key,
                    rotation,
                    client,
                };
                Keeper::of_secret(shared, self.period.unwrap_or(SECRET)).await
            }
        }
    }
}
