//! Warm restarts: a kind's store in a file, from which the next start goes on.

mod file;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::Client;
use lariat_core::{Gvk, ResourceVersion};
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use tokio::time;

use crate::store::Store;

/// How long the API server may take to say which cluster this is.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the stores of a factory are kept between two runs; a clone is the same place.
#[derive(Clone)]
pub(crate) struct WarmStore {
    folder: Arc<Path>,
    client: Client,
    /// Which cluster this is, once the API server has said so.
    cluster: Arc<OnceCell<String>>,
}

/// What a file holds, and what must be the same for it to be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// Raised whenever files of before cannot be read any more.
    format: u32,
    /// The uid of the namespace `kube-system`, which no two clusters share.
    cluster: String,
    kind: String,
    /// What is selected, and what is done with objects before they are kept.
    reading: String,
    version: String,
    objects: usize,
}

const FORMAT: u32 = 1;

/// A file that is not used, which is no failure: the kind is listed then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cold {
    #[error("there is no file of an earlier run")]
    NoFile,
    #[error("the API server does not say which cluster this is")]
    UnknownCluster,
    #[error("the file is of another cluster")]
    OtherCluster,
    #[error("the file is of other options, or of another version of Lariat")]
    OtherOptions,
    #[error("the file is damaged: {0}")]
    Damaged(String),
    #[error("the file cannot be read or written: {0}")]
    Io(#[from] std::io::Error),
}

/// Objects of an earlier run, and the version they are of.
pub(crate) struct Found {
    pub(crate) version: ResourceVersion,
    pub(crate) objects: Vec<Box<[u8]>>,
}

impl WarmStore {
    pub(crate) fn new(folder: &Path, client: Client) -> Self {
        Self {
            folder: folder.into(),
            client,
            cluster: Arc::default(),
        }
    }

    /// Looks for what an earlier run left of a kind.
    pub(crate) async fn find(&self, gvk: &Gvk, reading: &str) -> Result<Found, Cold> {
        // Asked even if there is no file: at the end another cluster may be there.
        let expected = self.header(gvk, reading).await?;
        let path = self.path(gvk);
        let read = tokio::task::spawn_blocking(move || file::read(&path, &expected)).await;
        read.map_err(|panic| Cold::Damaged(panic.to_string()))?
    }

    /// Leaves a kind for the next run.
    pub(crate) async fn leave(
        &self,
        gvk: &Gvk,
        reading: &str,
        (version, store): (&ResourceVersion, &Store),
    ) -> Result<(), Cold> {
        let snapshot = store.snapshot();
        let header = Header {
            version: version.to_string(),
            objects: snapshot.len(),
            ..self.header(gvk, reading).await?
        };
        let path = self.path(gvk);
        let written = tokio::task::spawn_blocking(move || file::write(&path, &header, &snapshot));
        written
            .await
            .map_err(|panic| Cold::Damaged(panic.to_string()))?
    }

    async fn header(&self, gvk: &Gvk, reading: &str) -> Result<Header, Cold> {
        Ok(Header {
            format: FORMAT,
            cluster: self.cluster().await?,
            kind: gvk.to_string(),
            reading: reading.to_owned(),
            version: String::new(),
            objects: 0,
        })
    }

    /// Returns which cluster this is; the API server is asked until it answers.
    async fn cluster(&self) -> Result<String, Cold> {
        let told = self.cluster.get_or_try_init(|| self.ask_cluster()).await;
        told.cloned()
    }

    async fn ask_cluster(&self) -> Result<String, Cold> {
        #[derive(Deserialize)]
        struct Namespace {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        struct Metadata {
            uid: String,
        }
        let request = Request::get("/api/v1/namespaces/kube-system").body(Vec::new());
        let request = request.map_err(|_| Cold::UnknownCluster)?;
        let answer = time::timeout(ANSWER_TIMEOUT, self.client.request::<Namespace>(request));
        match answer.await {
            Ok(Ok(namespace)) => Ok(namespace.metadata.uid),
            _ => Err(Cold::UnknownCluster),
        }
    }

    fn path(&self, gvk: &Gvk) -> PathBuf {
        let group = if gvk.group().is_empty() {
            "core"
        } else {
            gvk.group()
        };
        self.folder
            .join(format!("{group}.{}.{}.gz", gvk.version(), gvk.kind()))
    }
}

impl fmt::Debug for WarmStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarmStore")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}
