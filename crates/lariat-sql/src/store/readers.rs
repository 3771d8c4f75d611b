//! The connections that read.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::database::Database;
use super::reader::{Read, ReadError, Tables, read};
use crate::query::Plan;
use crate::sql::Connection;

/// Connections that read, as many as are used at a time.
pub(crate) struct Readers {
    database: Database,
    idle: Mutex<Vec<Box<dyn Connection>>>,
    permits: Arc<Semaphore>,
}

/// The right to read once.
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
}

impl Reader {
    /// Answers a query. It blocks.
    pub(crate) fn read(&self, of: &Tables, plan: &Plan) -> Result<Read, ReadError> {
        loop {
            let idle = self.readers.idle.lock().pop();
            let was_idle = idle.is_some();
            let mut connection = match idle {
                Some(idle) => idle,
                None => self.readers.database.open_to_read()?,
            };
            let answer = read(&mut *connection, of, plan);
            if !matches!(answer, Err(ReadError::Storage(_))) {
                self.readers.idle.lock().push(connection);
            } else if was_idle && connection.is_lost() {
                // It was lost before, and those beside it, too.
                self.readers.idle.lock().clear();
                continue;
            }
            // One that has failed is not used again.
            return answer;
        }
    }
}
