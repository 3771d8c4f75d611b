//! The source of a server's certificates, with the options of their rotation.

use std::path::PathBuf;
use std::time::Duration;

use kube::Client;
use lariat_core::ObjectKey;
use rustls::pki_types::ServerName;

use super::error::CertificateError;
use super::files::Files;
use super::keeper::Keeper;
use super::rotation::Rotation;
use super::secret::Shared;

/// The source of a server's certificates, and how they are renewed.
///
/// ```
/// use lariat::webhook::Certificates;
///
/// // Where cert-manager's Secret is mounted.
/// let mounted = Certificates::directory("/etc/webhooks");
/// // Made and rotated by the program, in a Secret that its replicas share.
/// let made = Certificates::secret(&"demo/widgets-webhooks".parse()?);
/// # let _ = (mounted, made);
/// # Ok::<(), lariat::core::ParseKeyError>(())
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

/// The default interval at which files are read.
const FILES: Duration = Duration::from_secs(10);
/// The default interval at which the Secret is read.
const SECRET: Duration = Duration::from_secs(60);
/// The default validity of a generated certificate.
const VALIDITY: Duration = Duration::from_secs(90 * 24 * 3600);
/// The shortest validity: the times in certificates are whole seconds.
const SHORTEST: Duration = Duration::from_secs(1);
/// The default time for which the next authority is trusted before it is used.
const OVERLAP: Duration = Duration::from_secs(3600);
/// The shortest interval between two reads.
const LEAST: Duration = Duration::from_millis(10);

impl Certificates {
    /// Reads `tls.crt` and `tls.key` from a directory, such as a mounted Secret.
    ///
    /// The Secret may be one of cert-manager. If there is a `ca.crt`, it is injected into the configurations. Otherwise
    /// another program must do so, such as cert-manager's injector, which is enabled by an
    /// [annotation](crate::Webhooks::annotate).
    ///
    /// The files are read every ten seconds, and a new certificate is used for new connections. If new files cannot be
    /// used, the old certificate stays in use, and the reason is logged once.
    pub fn directory(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        let files = Files {
            certificate: directory.join("tls.crt"),
            key: directory.join("tls.key"),
            authority: Some(directory.join("ca.crt")),
        };
        Self::new(Source::Files(files))
    }

    /// Reads a certificate and a key from two files.
    ///
    /// Otherwise like [`directory`](Self::directory).
    pub fn files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        let (certificate, key) = (certificate.into(), key.into());
        Self::new(Source::Files(Files {
            certificate,
            key,
            authority: None,
        }))
    }

    /// Generates certificates, and keeps them in a Secret that all replicas share.
    ///
    /// Each certificate has its own authority, whose key is discarded. When a third of its validity is left, the next
    /// certificate is generated. Its authority is injected into the configurations beside the present one. After the
    /// [overlap](Self::overlap) servers use the new certificate, and the old authority stays trusted as long as the new
    /// certificate is used. If the configurations cannot be applied, servers use the old certificate until a hundredth
    /// of its validity is left. Replicas agree through the resource version of the Secret.
    ///
    /// A name that the present certificate lacks, as after a renaming of the Service, also leads to a next certificate,
    /// for all names. Clients that call such a name get the next certificate at once, and the others keep the present
    /// one until the overlap has passed.
    ///
    /// A Secret that contains data of another program is not touched; it is an error. A Secret that is deleted or
    /// damaged while a replica runs gets the certificates of that replica back, and a next certificate, which replaces
    /// them in the same order.
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

    /// Sets the PEM file of the authority, which is injected into the configurations.
    pub fn authority(mut self, path: impl Into<PathBuf>) -> Self {
        if let Source::Files(files) = &mut self.source {
            files.authority = Some(path.into());
        }
        self
    }

    /// Sets the interval at which files (default 10 s) or the Secret (60 s) are read.
    ///
    /// It is at least 10 ms.
    pub fn period(self, period: Duration) -> Self {
        let period = Some(period.max(LEAST));
        Self { period, ..self }
    }

    /// Sets how long generated certificates are valid (default 90 days).
    ///
    /// Less than a second, including zero, is an error when the webhooks are served.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::webhook::Certificates;
    ///
    /// let certificates = Certificates::secret(&"demo/webhooks-tls".parse()?)
    ///     .validity(Duration::from_secs(30 * 24 * 3600))
    ///     .overlap(Duration::from_secs(2 * 3600));
    /// # let _ = certificates;
    /// # Ok::<(), lariat::core::ParseKeyError>(())
    /// ```
    pub fn validity(self, validity: Duration) -> Self {
        Self { validity, ..self }
    }

    /// Sets how long the next authority is trusted before servers use it (default 1 h).
    ///
    /// The time starts when a replica has applied the configurations with the next authority. Without
    /// [`endpoint`](crate::Webhooks::endpoint) it starts when the certificate is generated. It should be longer
    /// than the [period](Self::period) of all replicas, and than API servers need to observe a changed configuration.
    /// With zero, servers use the certificate at the next read of the Secret, and calls may fail until API servers
    /// trust it.
    pub fn overlap(self, overlap: Duration) -> Self {
        Self { overlap, ..self }
    }

    /// Adds names or addresses to generated certificates.
    ///
    /// Those of the Service or URL are always included. Names are kept in later certificates.
    pub fn names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Returns the Secret, if certificates are generated.
    pub(crate) fn shared_secret(&self) -> Option<&ObjectKey> {
        match &self.source {
            Source::Secret(key) => Some(key),
            Source::Files(_) => None,
        }
    }

    /// Loads or generates the first certificate, for the given names and its own ones.
    ///
    /// `endpoint` is the name that API servers call. With it the program applies the configurations, and injects the
    /// authority itself.
    pub(crate) async fn load(
        self,
        client: Client,
        mut names: Vec<String>,
        endpoint: Option<ServerName<'static>>,
    ) -> Result<Keeper, CertificateError> {
        match self.source {
            Source::Files(files) => {
                Keeper::of_files(files, self.period.unwrap_or(FILES), endpoint).await
            }
            Source::Secret(_) if self.validity < SHORTEST => {
                Err(CertificateError::Validity(self.validity))
            }
            Source::Secret(key) => {
                // Added to the names of the Service or URL, which API servers check.
                names.extend(self.names);
                if names.is_empty() {
                    // A certificate needs at least one name. Without an `Endpoint` nothing else is known.
                    names.push("localhost".to_owned());
                }
                // Sorted and unique, so that replicas with the same settings compute equal names.
                names.sort();
                names.dedup();
                let rotation = Rotation {
                    names,
                    validity: self.validity,
                    overlap: self.overlap,
                    injects: endpoint.is_some(),
                };
                let shared = Shared {
                    key,
                    rotation,
                    client,
                };
                Keeper::of_secret(shared, self.period.unwrap_or(SECRET), endpoint).await
            }
        }
    }
}
