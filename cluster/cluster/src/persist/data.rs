//! The data file of a cluster: opened, or filled for the first time.

use std::io;
use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;

use super::error::DataError;
use super::log::Log;
use super::writer::LogWriter;
use crate::access::Signer;
use crate::store::{Retention, Snapshot, Store};

/// The number of revisions that a cluster skips after a start.
const GAP: u64 = 10;

/// The data file of a cluster, or memory only.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    path: Option<PathBuf>,
}

/// The store that a cluster begins with, and the writer of its file.
pub(crate) struct Opened {
    pub(crate) store: Store,
    pub(crate) writer: Option<LogWriter>,
    /// The signer of tokens, if a key was given.
    pub(crate) signer: Option<Signer>,
}

impl Data {
    /// Keeps them in memory only.
    pub(crate) fn none() -> Self {
        Self { path: None }
    }

    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path: Some(path) }
    }

    /// Loads the file, or fills a new one, with a snapshot if there is one.
    ///
    /// With a key, tokens are signed with that of the file, which keeps the given one if it has none.
    pub(crate) async fn open(
        self,
        history: Retention,
        snapshot: Option<Snapshot>,
        key: Option<Vec<u8>>,
    ) -> io::Result<Opened> {
        let begin = move || match &snapshot {
            Some(snapshot) => Store::seeded(history, snapshot),
            None => Store::new(history),
        };
        let Some(path) = self.path else {
            return Ok(Opened {
                store: begin(),
                writer: None,
                signer: key.map(|key| Signer::new(&key)).transpose()?,
            });
        };
        let read = move || {
            create_private(&path);
            let (mut log, is_new) = Log::open(path.clone(), history)?;
            // It may have been there before, with permissions for others.
            make_private(&path)?;
            let signer = key.map(|key| log.keep_key(key)).transpose()?;
            let mut store = begin();
            if is_new {
                // What the store begins with is written first of all.
                store.make_durable();
                // A rewind to itself is recorded as a reset, by which the file gets all there is.
                let first = store.snapshot();
                store.rewind_to(&first);
            } else {
                store = Store::new(history);
                log.load(&mut store)?;
                store.make_durable();
                store.skip_revisions(GAP);
            }
            Ok(Opened {
                store,
                writer: Some(LogWriter::new(log)),
                signer,
            })
        };
        let read = spawn_blocking(read).await.map_err(io::Error::other)?;
        read.map_err(DataError::into_io)
    }
}

/// Creates a missing file for its owner alone: it will have Secrets in it.
fn create_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // Opening it reports what is wrong.
    drop(options.open(path));
}

/// Takes the permissions of others away from a data file, and from SQLite's files beside it.
fn make_private(path: &Path) -> Result<(), DataError> {
    #[cfg(unix)]
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.to_owned().into_os_string();
        file.push(suffix);
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        match std::fs::set_permissions(&file, private) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                let path = file.into();
                return Err(DataError::Private { path, source });
            }
            _ => {}
        }
    }
    Ok(())
}
