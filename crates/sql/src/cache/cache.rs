//! A cache in a database, as the handle of its tasks.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use lariat_cache::SharedCacheFactory;
use lariat_core::Gvk;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::answer::SqlStatus;
use super::builder::SqlCacheBuilder;
use super::error::SqlError;
use super::keys::SharedKeys;
use super::kind::SqlKind;
use crate::store::Writer;

/// A SQL cache of some kinds, filled by the informers of a [`SharedCacheFactory`].
///
/// Each kind is a subscriber of its informer, so no second watch is opened. Changes are written in batches, by tasks
/// for which the informers do not wait. Several pending changes of one object are written as one.
///
/// ```no_run
/// use lariat::cache::SharedCacheFactory;
/// use lariat::sql::{Field, FieldType, Query, Schema, SqlCache, field};
/// use lariat::Gvk;
///
/// # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let factory = SharedCacheFactory::new(client);
/// let node = Field::path("spec.nodeName", FieldType::Text)?;
/// let sql = SqlCache::builder(&factory)
///     .kind(Schema::new(Gvk::new("", "v1", "Pod"), [node])?)
///     .in_memory()
///     .start()
///     .await?;
/// factory.start();
///
/// let pods = sql.kind(&Gvk::new("", "v1", "Pod"))?;
/// let query = Query::new().filter(field("spec.nodeName").equals("node-1")).page(1, 50);
/// let answer = pods.query(&query).await?;
/// println!("{} of {} pods", answer.objects.len(), answer.total.unwrap_or_default());
/// # Ok(()) }
/// ```
///
/// Dropping it stops the tasks; [`stop`](Self::stop) also waits for writes in progress.
pub struct SqlCache {
    /// `None` if replicas share the database, of which one writes at a time.
    pub(super) writer: Option<Arc<Mutex<Writer>>>,
    pub(super) keys: Option<SharedKeys>,
    pub(super) writes: watch::Receiver<bool>,
    pub(super) kinds: HashMap<Gvk, SqlKind>,
    pub(super) tasks: Mutex<JoinSet<()>>,
    pub(super) stopping: CancellationToken,
}

impl SqlCache {
    /// Returns a builder of a cache that a factory's informers fill.
    pub fn builder(factory: &SharedCacheFactory) -> SqlCacheBuilder {
        SqlCacheBuilder::new(factory)
    }

    /// Returns a kind, to query and to watch.
    ///
    /// # Errors
    ///
    /// Fails if the cache does not have the kind.
    pub fn kind(&self, gvk: &Gvk) -> Result<SqlKind, SqlError> {
        self.kinds.get(gvk).cloned().ok_or_else(|| {
            let mut known: Vec<String> = self.kinds.keys().map(ToString::to_string).collect();
            // A hash map has no order, and an error text should be the same each time.
            known.sort();
            let kind = gvk.clone();
            SqlError::UnknownKind { kind, known }
        })
    }

    /// Returns all kinds, in no particular order.
    pub fn kinds(&self) -> impl Iterator<Item = &SqlKind> {
        self.kinds.values()
    }

    /// Returns the state of all kinds, sorted by kind.
    #[must_use]
    pub fn status(&self) -> Vec<SqlStatus> {
        let mut all: Vec<SqlStatus> = self.kinds.values().map(SqlKind::status).collect();
        all.sort_by_cached_key(|status| status.kind.to_string());
        all
    }

    /// Creates a new data key, which encrypts everything that is written from now on.
    ///
    /// In the background, the process that writes the cache seals existing rows anew, at most 20 in one transaction,
    /// and then drops the old data keys; a restart continues this. Queries are answered meanwhile. Cursors from before
    /// the rotation are invalid once the old keys are dropped; [`SqlStatus::old_data_keys`] is zero then.
    ///
    /// This does not rotate the key that wraps the data keys: after a rotation of the wrapping key, the next start
    /// wraps the same data keys again. After a wrapping key has leaked, rotate both.
    ///
    /// # Errors
    ///
    /// Fails if the cache has no key, or the new key cannot be created or stored; the current key stays in use.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the key may or may not have been rotated.
    pub async fn rotate_data_key(&self) -> Result<(), SqlError> {
        match &self.keys {
            Some(keys) => keys.rotate(self.writer.as_ref()).await,
            None => Err(SqlError::NotSealed),
        }
    }

    /// Returns whether this process writes the cache.
    ///
    /// A cache in a file or in memory is always written by its process. Of the replicas that share a PostgreSQL server,
    /// one writes at a time.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        *self.writes.borrow()
    }

    /// Stops the tasks, and waits until writes in progress are finished.
    ///
    /// Watches end. Queries are still answered, from the last written state.
    ///
    /// # Cancel safety
    ///
    /// The tasks stop even if the future is dropped.
    pub async fn stop(&self) {
        self.stopping.cancel();
        // Taken out of the lock, which must not be held across an await.
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.join_next().await.is_some() {}
    }
}

impl Drop for SqlCache {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

impl fmt::Debug for SqlCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlCache")
            .field("kinds", &self.kinds.keys())
            .finish_non_exhaustive()
    }
}
