//! A build without data files: every cluster lives in memory.

use std::io;
use std::sync::Arc;

use tokio_util::task::TaskTracker;

use crate::access::Signer;
use crate::server::Server;
use crate::store::{Retention, Snapshot, Store};

/// The data file of a cluster: never any.
#[derive(Debug, Clone)]
pub(crate) struct Data;

/// The store that a cluster begins with.
pub(crate) struct Opened {
    pub(crate) store: Store,
    pub(crate) writer: Option<LogWriter>,
    pub(crate) signer: Option<Signer>,
}

/// The writer of the file, which there is not.
#[derive(Debug)]
pub(crate) enum LogWriter {}

impl Data {
    pub(crate) fn none() -> Self {
        Self
    }

    #[expect(clippy::unused_async, reason = "with a file it waits")]
    pub(crate) async fn open(
        self,
        history: Retention,
        snapshot: Option<Snapshot>,
        key: Option<Vec<u8>>,
    ) -> io::Result<Opened> {
        let store = match snapshot {
            Some(snapshot) => Store::seeded(history, &snapshot),
            None => Store::new(history),
        };
        Ok(Opened {
            store,
            writer: None,
            signer: key.map(|key| Signer::new(&key)).transpose()?,
        })
    }
}

impl LogWriter {
    #[expect(clippy::unused_async, reason = "with a file it runs")]
    pub(crate) async fn run(self, _: Arc<Server>, _: TaskTracker) {
        match self {}
    }
}
