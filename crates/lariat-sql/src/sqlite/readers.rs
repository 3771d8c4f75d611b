//! The connections that read.

use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::StorageError;
use super::file::Database;
use super::reader::{Read, ReadError, Tables, read};
use crate::query::Plan;

/// Connections that read, as many as are used at a time.
#[derive(Debug)]
pub(crate) struct Readers {
    database: Database,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

/// The right to read once.
#[derive(Debug)]
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
        }
    }

    /// Waits until fewer than the limit read.
    pub(crate) async fn reader(self: &Arc<Self>) -> Reader {
        let permits = Arc::clone(&self.permits);
        let permit = permits.acquire_owned().await;
        Reader {
            readers: Arc::clone(self),
            _permit: permit.expect("the semaphore is never closed"),
        }
    }

    fn connection(&self) -> Result<Connection, StorageError> {
        let idle = self.idle.lock().pop();
        idle.map_or_else(|| self.database.open_to_read(), Ok)
    }
}

impl Reader {
    /// Answers a query. It blocks.
    pub(crate) fn read(&self, of: &Tables, plan: &Plan, history: u32) -> Result<Read, ReadError> {
        let mut connection = self.readers.connection()?;
        let answer = read(&mut connection, of, plan, history);
        // One that has failed is not used again.
        if !matches!(answer, Err(ReadError::Storage(_))) {
            self.readers.idle.lock().push(connection);
        }
        answer
    }
}
