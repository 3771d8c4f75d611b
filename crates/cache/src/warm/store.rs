//! The files of a factory: which file a kind has, and the identity of the cluster.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fmt, io};

use futures::FutureExt;
use lariat_client::{CountedClient, Single};
use lariat_core::{Gvk, ResourceVersion, describe};
use lariat_seal::{Context, Sealing, is_always_sealed};
use serde::Deserialize;
use tokio::time;

use super::header::{Cold, FORMAT, Found, Header};
use super::keys::Keys;
use super::{file, sealed};
use crate::store::Store;

/// The timeout of the request that identifies the cluster.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How many bytes the answer may have.
const NAMESPACE_LIMIT: usize = 4 * 1024 * 1024;

/// The first and the longest delay before an unanswered request is repeated.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// How many error answers are tolerated.
const ERRORS: u32 = 5;

/// The folder in which a factory saves its stores; a clone is the same folder.
#[derive(Clone)]
pub(crate) struct WarmStore {
    folder: Arc<Path>,
    cluster: ClusterUid,
    /// The keys of sealed files; without keys, Secrets are not saved.
    keys: Option<Arc<Keys>>,
    /// Whether plain files of Secrets, which earlier versions wrote, were removed.
    cleaned: Arc<AtomicBool>,
    /// Whether it was logged why Secrets are not saved.
    explained: Arc<AtomicBool>,
}

/// The form in which a kind is saved.
enum Form {
    Plain,
    Sealed(Arc<Keys>),
}

impl WarmStore {
    pub(crate) fn new(folder: &Path, cluster: ClusterUid, sealing: Option<Sealing>) -> Self {
        Self {
            folder: folder.into(),
            cluster,
            keys: sealing.map(|sealing| Arc::new(Keys::new(sealing))),
            cleaned: Arc::default(),
            explained: Arc::default(),
        }
    }

    /// Loads the file of a kind that an earlier run has saved.
    pub(crate) async fn find(&self, gvk: &Gvk, reading: &str) -> Result<Found, Cold> {
        self.remove_plain_text(gvk).await;
        let form = self.form(gvk).ok_or(Cold::NoKey)?;
        // Requested even if there is no file: it is needed at the stop, when it may not be answered any more.
        let expected = self.header(gvk, reading).await?;
        let path = self.file(gvk);
        let Form::Sealed(keys) = form else {
            return blocking(move || file::read(&path, &expected)).await;
        };
        // The stop may have no time to wait for the wrapper. An error that persists is logged then.
        let _ = keys.own().await;
        let (file, stored) = blocking(move || sealed::read_head(&path)).await?;
        let keyring = keys.of(&stored).await?;
        let context = context(gvk);
        blocking(move || sealed::read(file, &keyring, &context, &expected)).await
    }

    /// Removes the files of a kind, from which no later run may continue.
    pub(crate) async fn forget(&self, gvk: &Gvk) {
        let paths = [self.plain_file(gvk), self.sealed_file(gvk)];
        let removed = blocking(move || paths.iter().try_for_each(|path| remove(path))).await;
        if let Err(reason) = removed {
            tracing::error!(kind = %gvk, folder = %self.folder.display(), %reason, "a file of a former history cannot be removed; remove it before the next start");
        }
    }

    /// Saves a kind for the next run.
    pub(crate) async fn leave(
        &self,
        gvk: &Gvk,
        reading: &str,
        version: &ResourceVersion,
        store: &Store,
    ) -> Result<(), Cold> {
        self.remove_plain_text(gvk).await;
        let Some(form) = self.form(gvk) else {
            return Ok(());
        };
        let snapshot = store.snapshot();
        let header = Header {
            version: version.to_string(),
            objects: snapshot.len(),
            ..self.header(gvk, reading).await?
        };
        let path = self.file(gvk);
        match form {
            Form::Plain => {
                let sealed = self.sealed_file(gvk);
                let write = move || {
                    file::write(&path, &header, &snapshot)?;
                    // A later run that seals must not find a sealed file that is older than this one.
                    remove(&sealed)
                };
                blocking(write).await
            }
            Form::Sealed(keys) => {
                let (keyring, context) = (keys.own().await?, context(gvk));
                let write = move || sealed::write(&path, &keyring, &context, &header, &snapshot);
                blocking(write).await
            }
        }
    }

    /// Returns the form in which a kind is saved; `None`, logged once, if it is not.
    fn form(&self, gvk: &Gvk) -> Option<Form> {
        match &self.keys {
            Some(keys) if keys.seals(gvk) => Some(Form::Sealed(Arc::clone(keys))),
            None if is_always_sealed(gvk) => {
                if !self.explained.swap(true, Ordering::Relaxed) {
                    tracing::info!(
                        kind = %gvk,
                        "Secrets are listed at every start; to save them, provide a key with `seal_warm_files`"
                    );
                }
                None
            }
            _ => Some(Form::Plain),
        }
    }

    /// Removes plain files of kinds that are sealed now, and of Secrets in any case.
    async fn remove_plain_text(&self, gvk: &Gvk) {
        let mut paths = Vec::new();
        let mut add = |kind: &Gvk| {
            let plain = self.plain_file(kind);
            paths.extend([file::unfinished(&plain), plain]);
        };
        if !self.cleaned.swap(true, Ordering::Relaxed) {
            add(&Gvk::new("", "v1", "Secret"));
        }
        if !matches!(self.form(gvk), Some(Form::Plain)) {
            add(gvk);
        }
        if paths.is_empty() {
            return;
        }
        let remove_all = move || {
            for path in paths {
                if let Err(reason) = remove(&path) {
                    let file = path.display();
                    tracing::warn!(%file, %reason, "a plain file of an earlier run cannot be removed; delete it");
                }
            }
            Ok(())
        };
        // A panic of the closure was reported already.
        let _ = blocking(remove_all).await;
    }

    async fn header(&self, gvk: &Gvk, reading: &str) -> Result<Header, Cold> {
        Ok(Header {
            format: FORMAT,
            cluster: self.cluster.uid().await?,
            kind: gvk.to_string(),
            reading: reading.to_owned(),
            version: String::new(),
            objects: 0,
        })
    }

    /// Returns the file of a kind.
    pub(crate) fn file(&self, gvk: &Gvk) -> PathBuf {
        if self.keys.as_ref().is_some_and(|keys| keys.seals(gvk)) {
            self.sealed_file(gvk)
        } else {
            self.plain_file(gvk)
        }
    }

    fn plain_file(&self, gvk: &Gvk) -> PathBuf {
        self.path(gvk, "gz")
    }

    fn sealed_file(&self, gvk: &Gvk) -> PathBuf {
        self.path(gvk, "sealed")
    }

    fn path(&self, gvk: &Gvk, extension: &str) -> PathBuf {
        let group = if gvk.group().is_empty() {
            "core"
        } else {
            gvk.group()
        };
        self.folder.join(format!(
            "{group}.{}.{}.{extension}",
            gvk.version(),
            gvk.kind()
        ))
    }
}

/// The identity of the cluster: the uid of its namespace `kube-system`.
///
/// A clone is the same.
#[derive(Clone)]
pub(crate) struct ClusterUid {
    client: CountedClient,
    uid: Arc<OnceLock<String>>,
    /// All kinds share an attempt, also a failed one: they start and stop together.
    asking: Arc<Single<Result<String, Arc<kube::Error>>>>,
    explained: Arc<AtomicBool>,
}

impl ClusterUid {
    pub(crate) fn new(client: CountedClient) -> Self {
        Self {
            client,
            uid: Arc::default(),
            asking: Arc::new(Single::new()),
            explained: Arc::default(),
        }
    }

    /// Returns the uid, which is requested until the API server has answered once.
    pub(crate) async fn uid(&self) -> Result<String, Cold> {
        let asked = self.asked().await;
        asked.map_err(|error| Cold::UnknownCluster(describe(&*error)))
    }

    /// Returns the uid, from the answer to a request that all waiters share.
    async fn asked(&self) -> Result<String, Arc<kube::Error>> {
        if let Some(uid) = self.uid.get() {
            return Ok(uid.clone());
        }
        let this = self.clone();
        let ask = || async move { this.ask().await.map_err(Arc::new) }.boxed();
        let uid = self.asking.join((), ask).await?;
        Ok(self.uid.get_or_init(|| uid).clone())
    }

    /// Returns the uid, if the API server has answered.
    pub(crate) fn known(&self) -> Option<&str> {
        self.uid.get().map(String::as_str)
    }

    /// Waits until the uid is known; returns whether it is.
    ///
    /// The request is repeated until the server answers. After several error answers, or one refusal, this returns
    /// `false` and logs the reason once.
    pub(crate) async fn wait(&self) -> bool {
        let (mut pause, longest) = PAUSES;
        let mut errors = 0;
        loop {
            let Err(error) = self.asked().await else {
                return true;
            };
            let answered = code(&error);
            errors += u32::from(answered.is_some());
            if errors > ERRORS || matches!(answered, Some(401 | 403 | 404)) {
                if !self.explained.swap(true, Ordering::Relaxed) {
                    let reason = describe(&*error);
                    tracing::info!(
                        reason,
                        "kinds are listed at the next start: the program may not get the namespace kube-system, which identifies the cluster"
                    );
                }
                return false;
            }
            time::sleep(pause).await;
            pause = (2 * pause).min(longest);
        }
    }

    async fn ask(&self) -> Result<String, kube::Error> {
        /// A document that may be something else than its type.
        #[derive(Deserialize)]
        struct Namespace {
            metadata: Metadata,
        }
        /// A document that may be something else than its type.
        #[derive(Deserialize)]
        struct Metadata {
            uid: String,
        }
        let path = "/api/v1/namespaces/kube-system";
        let sent = self
            .client
            .get(path, "application/json", NAMESPACE_LIMIT, ANSWER_TIMEOUT);
        let namespace: Namespace =
            serde_json::from_str(&sent.await?).map_err(kube::Error::SerdeError)?;
        Ok(namespace.metadata.uid)
    }
}

/// Returns the code of an error answer; `None` if there was no answer.
fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Returns the context of a sealed file, which binds it to its kind.
fn context(gvk: &Gvk) -> Context {
    Context::new("lariat-cache warm file").and(gvk.to_string())
}

/// Removes a file, if it exists.
fn remove(path: &Path) -> Result<(), Cold> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match std::fs::remove_file(path) {
        Err(error) if !matches!(error.kind(), NotFound | NotADirectory) => Err(error.into()),
        _ => Ok(()),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Cold> + Send + 'static,
) -> Result<T, Cold> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.map_err(|panic| Cold::Damaged(panic.to_string()))?
}

impl fmt::Debug for WarmStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarmStore")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}
