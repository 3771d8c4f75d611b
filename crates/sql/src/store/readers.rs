//! The readers: a pool of connections that read.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::database::Database;
use super::reader::{Tables, read};
use super::{kept, kinds};
use crate::query::Plan;
use crate::read::{ByteLimit, Page, Read, ReadError};
use crate::sql::{Connection, StorageError};

/// A pool of connections that read.
pub(crate) struct Readers {
    database: Database,
    idle: Mutex<Vec<Box<dyn Connection>>>,
    permits: Arc<Semaphore>,
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "users are known to the HTTP service only")
    )]
    limit: usize,
}

/// The permit for one read.
pub(crate) struct Reader {
    readers: Arc<Readers>,
    _permit: OwnedSemaphorePermit,
}

impl Readers {
    pub(crate) fn new(database: Database, limit: usize) -> Self {
        Self {
            database,
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(limit)),
            limit,
        }
    }

    /// Returns the number of connections that may read at a time.
    #[cfg(feature = "http")]
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Waits until fewer connections than the limit are reading.
    pub(crate) async fn reader(self: &Arc<Self>) -> Reader {
        let permits = Arc::clone(&self.permits);
        let permit = permits.acquire_owned().await;
        Reader {
            readers: Arc::clone(self),
            _permit: permit.expect("the semaphore is never closed"),
        }
    }
}

impl Reader {
    /// Answers a query, unless it is interrupted; blocks.
    pub(crate) fn read(
        &self,
        of: &Tables,
        plan: &Plan,
        limit: Option<&ByteLimit>,
        interrupt: &CancellationToken,
    ) -> Result<Read, ReadError> {
        self.with(interrupt, |connection| {
            match read(connection, of, plan, limit) {
                Err(ReadError::Storage(error)) => Err(error),
                answer => Ok(answer),
            }
        })?
    }

    /// Returns the keys of encrypted kinds in their stored form; blocks.
    pub(crate) fn keyring(&self) -> Result<Option<Vec<u8>>, StorageError> {
        self.with(&CancellationToken::new(), kinds::keyring)
    }

    /// Returns the version of a kind's objects, if they were read under this identity.
    ///
    /// Blocks.
    pub(crate) fn kept_version(
        &self,
        of: &Tables,
        identity: &str,
    ) -> Result<Option<u64>, StorageError> {
        self.with(&CancellationToken::new(), |connection| {
            kept::version(connection, of, identity)
        })
    }

    /// Returns the stored objects after a row; blocks.
    pub(crate) fn kept_page(&self, of: &Tables, after: i64) -> Result<Page, StorageError> {
        self.with(&CancellationToken::new(), |connection| {
            kept::page(connection, of, after)
        })
    }

    fn with<T>(
        &self,
        interrupt: &CancellationToken,
        read: impl Fn(&mut dyn Connection) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        loop {
            if interrupt.is_cancelled() {
                return Err(StorageError::Interrupted);
            }
            // The most recently used one, whose cache is warm.
            let idle = self.readers.idle.lock().pop();
            let was_idle = idle.is_some();
            // Opened without the lock, because connecting to a server takes time.
            let mut connection = match idle {
                Some(idle) => idle,
                None => self.readers.database.open_to_read()?,
            };
            connection.interrupt_by(interrupt)?;
            let answer = read(&mut *connection);
            // A connection that was interrupted after the answer may have an open transaction.
            if answer.is_ok() && !connection.is_lost() {
                self.readers.idle.lock().push(connection);
            } else if was_idle && connection.is_lost() && !interrupt.is_cancelled() {
                // The server was lost before this read, and all idle connections with it.
                self.readers.idle.lock().clear();
                continue;
            }
            // A connection with an error is not used again.
            return answer;
        }
    }
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers")
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_interrupted_reader_makes_room_and_nothing_is_read_for_it() {
        let readers = Arc::new(Readers::new(Database::in_memory(), 1));
        let reader = readers.reader().await;
        let waits = time::timeout(Duration::from_secs(1), readers.reader());
        assert!(waits.await.is_err());
        let token = CancellationToken::new();
        token.cancel();
        let read = reader.with(&token, |_| -> Result<(), StorageError> { unreachable!() });
        assert!(matches!(read, Err(StorageError::Interrupted)), "{read:?}");
        drop(reader);
        let reader = readers.reader().await;
        reader.with(&CancellationToken::new(), |_| Ok(())).unwrap();
    }
}
