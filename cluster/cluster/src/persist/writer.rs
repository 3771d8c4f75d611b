//! The task that carries commits to the disk.

use std::sync::Arc;
use std::time::Duration;

use tokio::time;
use tokio_util::task::TaskTracker;

use super::log::Log;
use crate::server::Server;
use crate::store::Batch;

/// The delay before a failed write is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Writes the commits of the store to the data file.
#[derive(Debug)]
pub(crate) struct LogWriter {
    log: Log,
}

impl LogWriter {
    pub(super) fn new(log: Log) -> Self {
        Self { log }
    }

    /// Writes until the cluster stops and everything is on disk.
    pub(crate) async fn run(self, server: Arc<Server>, tasks: TaskTracker) {
        let mut log = Some(self.log);
        while let Some(held) = log.take() {
            match server.store.take_batch() {
                Some(batch) => log = write(held, batch, &server, &tasks).await,
                // What is committed from here on is answered as not saved.
                None if server.stopped.is_cancelled() => break,
                None => {
                    log = Some(held);
                    tokio::select! {
                        () = server.store.record_pending() => {}
                        // There is one more turn, for what was committed until then.
                        () = server.stopped.cancelled() => {}
                    }
                }
            }
        }
        server.store.close();
    }
}

/// Writes a batch, and tries again until that succeeds.
///
/// `None` if the cluster stops before.
async fn write(mut log: Log, batch: Batch, server: &Server, tasks: &TaskTracker) -> Option<Log> {
    let batch = Arc::new(batch);
    loop {
        let written = Arc::clone(&batch);
        // As a blocking task it keeps paused time from moving on.
        let task = tasks.spawn_blocking(move || {
            let outcome = log.write(&written);
            (log, outcome)
        });
        let outcome;
        (log, outcome) = task.await.ok()?;
        let Err(error) = outcome else {
            server.store.written(&batch);
            return compact(log, tasks).await;
        };
        tracing::error!(%error, "cannot save what was written");
        server.store.not_written(&error.to_string());
        if server.stopped.is_cancelled() {
            return None;
        }
        tokio::select! {
            () = time::sleep(RETRY) => {}
            () = server.stopped.cancelled() => {}
        }
    }
}

/// Makes the file smaller if it is time, once no write waits for it.
async fn compact(mut log: Log, tasks: &TaskTracker) -> Option<Log> {
    if !log.needs_compaction() {
        return Some(log);
    }
    let task = tasks.spawn_blocking(move || {
        if let Err(error) = log.compact() {
            tracing::warn!(%error, "cannot compact the data file");
        }
        log
    });
    task.await.ok()
}
