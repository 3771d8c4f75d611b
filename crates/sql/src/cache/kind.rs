//! One kind of the cache, to query and to watch.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lariat_core::Gvk;
use lariat_seal::Keyring;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::answer::{QueryResult, SqlStatus};
use super::blocking::{LOOK, blocking};
use super::error::SqlError;
use super::keys::SharedKeys;
use super::left_out::LeftOut;
use super::unread::Unread;
use crate::access::Access;
use crate::query::{Cursor, Part, Plan, Query, QueryError, Scope, View};
use crate::read::{ByteLimit, Read, ReadError};
use crate::revision::{Position, Revision};
use crate::schema::Schema;
use crate::sql::StorageError;
use crate::store::{Reached, Reader, Readers, Tables};
use crate::watch::{History, Watch, WatchError};

/// A kind of a [`SqlCache`](crate::SqlCache), to query and to watch.
///
/// A clone is the same kind, with the same restrictions.
///
/// ```no_run
/// use lariat::sql::{Query, SqlCache, label};
/// use lariat::Gvk;
///
/// # async fn example(sql: &SqlCache) -> Result<(), lariat::sql::SqlError> {
/// let pods = sql.kind(&Gvk::new("", "v1", "Pod"))?;
/// let query = Query::new().filter(label("app").equals("web")).summarize(label("version")).only_counts();
/// for count in &pods.query(&query).await?.summaries[0] {
///     println!("{}: {}", count.value, count.objects);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SqlKind {
    inner: Arc<Inner>,
    /// The part of the kind that may be read.
    view: View,
}

pub(super) struct Inner {
    pub(super) tables: Tables,
    /// The changes since this process began to write; `None` while another one writes.
    history: RwLock<Option<Arc<History>>>,
    /// Changes that the informer has published and that are not written yet.
    ///
    /// There are none while another process writes.
    unread: RwLock<Arc<Unread>>,
    common: Common,
    pub(super) progress: watch::Sender<Progress>,
    /// The number of queries that wait for a version.
    pub(super) waiting: watch::Sender<usize>,
    /// How often each field had no usable value, by its position.
    pub(super) unindexable: Mutex<BTreeMap<usize, u64>>,
    pub(super) left_out: LeftOut,
    /// The largest number of rows that may be sealed with an old data key.
    pub(super) old_rows: AtomicUsize,
}

/// What the kinds of a cache have in common.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) readers: Arc<Readers>,
    pub(super) keys: Option<SharedKeys>,
    pub(super) wait_timeout: Duration,
    pub(super) query_timeout: Duration,
    /// The number of changes of a kind that are kept for watches.
    pub(super) history: usize,
    /// Notified when a query begins to wait.
    pub(super) wanted: Arc<Notify>,
    /// The progress of each kind.
    pub(super) kinds: Arc<HashMap<Gvk, watch::Receiver<Progress>>>,
}

/// The progress of a kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    pub(super) is_synced: bool,
    pub(super) reached: Reached,
    /// The number of objects that were written without their content.
    pub(super) without_content: usize,
    /// The phase of the informer.
    pub(super) phase: String,
    pub(super) last_error: Option<String>,
}

impl SqlKind {
    pub(super) fn new(tables: Tables, progress: watch::Sender<Progress>, common: &Common) -> Self {
        Self {
            inner: Arc::new(Inner {
                tables,
                history: RwLock::default(),
                unread: RwLock::default(),
                common: common.clone(),
                progress,
                waiting: watch::Sender::default(),
                unindexable: Mutex::default(),
                left_out: LeftOut::default(),
                old_rows: AtomicUsize::new(0),
            }),
            view: View::default(),
        }
    }

    /// Returns the kind restricted to the objects that a user may see.
    ///
    /// Objects that are not allowed do not appear in answers, totals, counts or events. Restricting a restricted kind
    /// allows what both accesses allow. The access is a snapshot: ask [`AccessReviews`](crate::AccessReviews) again for
    /// later queries, and end watches when it changes.
    ///
    /// ```no_run
    /// use lariat::sql::{Access, Query, SqlKind};
    ///
    /// # async fn example(pods: &SqlKind) -> Result<(), lariat::sql::SqlError> {
    /// let visible = pods.restricted(Access::of_namespaces(["shop"]));
    /// let answer = visible.query(&Query::new()).await?;
    /// println!("{} pods", answer.objects.len());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn restricted(&self, access: Access) -> Self {
        let accesses = self.view.accesses.iter().cloned().chain([access]);
        let mut kind = self.clone();
        kind.view.accesses = accesses.collect();
        kind
    }

    /// Allows queries by [associated](crate::Association) objects of another kind.
    ///
    /// The access decides which of those objects the user may see. Without it, a [restricted](Self::restricted) kind
    /// answers such queries with an error. Objects that are not allowed count as missing, in conditions, orders and
    /// summaries. Two accesses for one kind allow what both allow.
    #[must_use]
    pub fn restricted_associated(&self, other: &Gvk, access: Access) -> Self {
        let others = self
            .view
            .others
            .iter()
            .cloned()
            .chain([(other.clone(), access)]);
        let mut kind = self.clone();
        kind.view.others = others.collect();
        kind
    }

    /// Returns the number of queries that the database answers at a time.
    #[cfg(feature = "http")]
    pub(crate) fn readers(&self) -> usize {
        self.inner.common.readers.limit()
    }

    /// Returns whether the kind is encrypted.
    #[cfg(feature = "http")]
    pub(crate) fn is_sealed(&self) -> bool {
        self.inner.tables.sealed.is_some()
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Returns the indexed fields.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.inner.tables.schema
    }

    /// Answers a query from one state of the cache.
    ///
    /// It waits for the initial sync of the kind and of other kinds in the query, and for the revision that the query
    /// requires, at most for the [timeout](crate::SqlCacheBuilder::wait_timeout) of the cache. The revision of the
    /// answer is at least that one; it applies to this kind only.
    ///
    /// # Errors
    ///
    /// Fails if the query contains an unknown field or a value of another type, the cache has not synced in time, the
    /// query exceeds its [timeout](crate::SqlCacheBuilder::query_timeout), or the database cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing, and interrupts the query in the database.
    pub async fn query(&self, query: &Query) -> Result<QueryResult, SqlError> {
        self.query_within(query, None).await
    }

    /// Answers a query within a limit on bytes.
    ///
    /// At the limit the objects end early, with a cursor; there is at least one.
    pub(crate) async fn query_within(
        &self,
        query: &Query,
        limit: Option<ByteLimit>,
    ) -> Result<QueryResult, SqlError> {
        let plan = Arc::new(self.plan(query)?);
        // Labels of namespaces need a join, which an encrypted kind and a missing kind do not allow.
        let label = plan.namespaces.as_ref().and_then(|it| it.label.clone());
        if let Some(label) = label {
            let reason = if self.inner.tables.sealed.is_some() {
                "name the namespaces of an encrypted kind"
            } else if self.inner.tables.namespaces.is_none() {
                "add the kind v1 Namespace to the cache, and do not encrypt it"
            } else {
                ""
            };
            if !reason.is_empty() {
                return Err(QueryError::NamespaceLabel { label, reason }.into());
            }
        }
        let before = self.keys();
        let at_least = match self.at_least(query, &plan) {
            // Another process may have created new keys, and encrypted the cursor with them.
            Err(QueryError::Cursor(_)) if self.has_new_keys(before).await? => {
                self.at_least(query, &plan)?
            }
            at_least => at_least?,
        };
        self.answer(plan, at_least, limit).await
    }

    /// Answers a query once its kinds have synced and this kind is new enough.
    async fn answer(
        &self,
        plan: Arc<Plan>,
        at_least: u64,
        limit: Option<ByteLimit>,
    ) -> Result<QueryResult, SqlError> {
        let deadline = deadline(self.inner.common.wait_timeout);
        loop {
            // In the loop: another process may have begun to write one of them since the last attempt.
            for other in &plan.others {
                self.synced(other, deadline).await?;
            }
            self.reach(at_least, deadline).await?;
            let before = self.keys();
            let failed = match self.read(&plan, limit.clone()).await? {
                Ok(read) if read.revision.version() >= at_least => return Ok(read.into()),
                // The version may have decreased, if the API server was restored or namespaces are read one by one.
                Ok(read) => self.behind(read.revision, at_least),
                // Another process has begun to write the kind, which the progress here may not show yet.
                Err(ReadError::Unfilled { kind }) => self.not_synced(kind),
                Err(ReadError::Storage(error)) => {
                    // Keys were replaced during the query, or another process has created new ones.
                    if matches!(error, StorageError::Seal(_)) && self.has_new_keys(before).await? {
                        continue;
                    }
                    return Err(error.into());
                }
                Err(ReadError::Query(error)) => return Err(error.into()),
                Err(ReadError::NoRoom) => {
                    let kind = self.schema().gvk().clone();
                    return Err(SqlError::NoRoom { kind });
                }
            };
            if Instant::now() >= deadline {
                return Err(failed);
            }
            // Makes the feed check the version more often while this query waits.
            let _waits = self.waits();
            time::sleep(LOOK).await;
        }
    }

    async fn read(
        &self,
        plan: &Arc<Plan>,
        limit: Option<ByteLimit>,
    ) -> Result<Result<Read, ReadError>, SqlError> {
        let (inner, plan) = (Arc::clone(&self.inner), Arc::clone(plan));
        let interrupt = CancellationToken::new();
        let interrupted = interrupt.clone();
        // Interrupts the database after the timeout, and if this future is dropped.
        let _interrupts = interrupt.drop_guard();
        // The timeout begins after `reach`, and includes waiting for a reader.
        let read = async {
            let reader = inner.reader().await;
            blocking(move || Ok(reader.read(&inner.tables, &plan, limit.as_ref(), &interrupted)))
                .await
        };
        let after = self.inner.common.query_timeout;
        if after.is_zero() {
            return read.await;
        }
        let read = time::timeout(after, read).await;
        read.unwrap_or_else(|_| {
            let kind = self.schema().gvk().clone();
            Err(SqlError::Timeout { kind, after })
        })
    }

    /// Returns the present keys of an encrypted kind.
    fn keys(&self) -> Option<Arc<Keyring>> {
        let sealed = self.inner.tables.sealed.as_ref();
        sealed.map(|sealed| sealed.keys.current())
    }

    /// Returns whether other keys than these are in use; reads the stored ones if not.
    ///
    /// Another process that shares the cache may have replaced them, and another query may have noticed that.
    async fn has_new_keys(&self, before: Option<Arc<Keyring>>) -> Result<bool, SqlError> {
        let Some((keys, before)) = self.inner.common.keys.as_ref().zip(before) else {
            return Ok(false);
        };
        Ok(!keys.keys.is_current(&before) || keys.refresh().await?)
    }

    /// Watches the objects that a query selects, from a revision on.
    ///
    /// The revision is that of a [`QueryResult`] or of an event; without one, the watch starts now. Only the conditions
    /// of the query apply.
    ///
    /// ```no_run
    /// use lariat::sql::{Query, SqlKind, WatchEvent};
    ///
    /// # async fn example(pods: &SqlKind) -> Result<(), Box<dyn std::error::Error>> {
    /// let query = Query::new().namespaces(["shop"]);
    /// let answer = pods.query(&query).await?;
    /// let mut watch = pods.watch(&query, Some(answer.revision))?;
    /// while let Some(event) = watch.next().await {
    ///     match event? {
    ///         WatchEvent::Deleted(last) => println!("{} is deleted", last.object.key()),
    ///         event => println!("{} is changed", event.watched().object.key()),
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// If replicas share the cache, only the writing one has watches.
    ///
    /// # Errors
    ///
    /// The query contains an unknown field or a value of another type, or the changes since the revision are no longer
    /// kept: list again.
    pub fn watch(&self, query: &Query, since: Option<Revision>) -> Result<Watch, WatchError> {
        let schema = self.schema();
        if let Some(label) = query.namespaces.as_ref().and_then(|it| it.label.clone()) {
            let reason = "name the namespaces of a watch";
            return Err(QueryError::NamespaceLabel { label, reason }.into());
        }
        let plan = self.plan(query)?;
        if let Some(association) = plan.conditional(schema) {
            let reason = "a watch does not follow the other kind: watch without this condition, or watch that kind and list again".to_owned();
            return Err(QueryError::Association {
                association,
                reason,
            }
            .into());
        }
        let Some(history) = self.inner.history() else {
            let kind = schema.gvk().clone();
            return Err(WatchError::Elsewhere { kind });
        };
        // Taken from this history: a revision of an earlier one would be too old at once.
        let since = since.unwrap_or_else(|| self.inner.now(&history));
        Watch::new(schema, plan, &history, since)
    }

    /// Returns the revision up to which the kind was written.
    #[must_use]
    pub fn revision(&self) -> Revision {
        let Reached {
            version,
            history,
            change,
        } = self.inner.progress.borrow().reached;
        Revision::new(version, Some(Position { history, change }))
    }

    /// Returns the state of the kind.
    #[must_use]
    pub fn status(&self) -> SqlStatus {
        let progress = self.inner.progress.borrow().clone();
        let unindexable = self.inner.unindexable.lock();
        let fields = self.schema().fields();
        let (unwritten, lag) = self.inner.unread.read().unwritten();
        let sealed = self.inner.tables.sealed.as_ref();
        let old_data_keys = sealed.map_or(0, |sealed| sealed.keys.current().old_data_keys());
        let old_rows = self.inner.old_rows.load(Ordering::Relaxed);
        SqlStatus {
            kind: self.schema().gvk().clone(),
            is_synced: progress.is_synced,
            revision: self.revision(),
            unwritten,
            lag,
            without_content: progress.without_content,
            left_out: self.inner.left_out.len(),
            unindexable: unindexable
                .iter()
                .map(|(place, count)| (fields[*place].name().to_owned(), *count))
                .collect(),
            skipped_columns: self.schema().skipped_columns(),
            old_data_keys,
            // A process that does not write any more does not count them.
            old_rows: if old_data_keys > 0 { old_rows } else { 0 },
            last_error: progress.last_error,
        }
    }

    /// Checks a query against the fields of the kind.
    fn plan(&self, query: &Query) -> Result<Plan, QueryError> {
        let tables = &self.inner.tables;
        let scope = Scope {
            schema: &tables.schema,
            others: &tables.associated,
            view: &self.view,
        };
        Plan::new(&scope, query)
    }

    /// Returns the lowest version at which the query may be answered.
    fn at_least(&self, query: &Query, plan: &Plan) -> Result<u64, QueryError> {
        let asked = query.at_least.map_or(0, Revision::version);
        let Part::After {
            cursor: Some(cursor),
            ..
        } = &plan.part
        else {
            return Ok(asked);
        };
        // The cursor may be from another replica that was ahead of this one.
        let sealed = self.inner.tables.sealed.as_ref();
        let keys = sealed.map(|sealed| sealed.keys.current());
        let cursor = Cursor::read(cursor, plan, keys.as_deref())?;
        Ok(asked.max(cursor.revision.version()))
    }

    /// Waits until the kind has synced and reached a version.
    async fn reach(&self, wanted: u64, deadline: Instant) -> Result<(), SqlError> {
        let is_there =
            |progress: &Progress| progress.is_synced && progress.reached.version >= wanted;
        // Without registering as waiting, which would wake the feed.
        if is_there(&self.inner.progress.borrow()) {
            return Ok(());
        }
        let _waits = self.waits();
        self.synced(self.schema().gvk(), deadline).await?;
        let mut progress = self.inner.progress.subscribe();
        let reached = time::timeout_at(deadline, progress.wait_for(is_there)).await;
        match reached {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(SqlError::Stopped),
            Err(_) => Err(self.behind(self.revision(), wanted)),
        }
    }

    /// Waits until a kind of the cache has synced.
    async fn synced(&self, kind: &Gvk, deadline: Instant) -> Result<(), SqlError> {
        let common = &self.inner.common;
        // A kind that is not in the cache was refused before.
        let Some(mut progress) = common.kinds.get(kind).cloned() else {
            return Ok(());
        };
        if progress.borrow().is_synced {
            return Ok(());
        }
        let _waits = self.waits();
        let synced = progress.wait_for(|progress| progress.is_synced);
        match time::timeout_at(deadline, synced).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(SqlError::Stopped),
            Err(_) => Err(self.not_synced(kind.clone())),
        }
    }

    /// Counts a waiting query until the guard is dropped, and wakes the replica.
    fn waits(&self) -> Waits<'_> {
        let waits = Waits::new(&self.inner.waiting);
        self.inner.common.wanted.notify_one();
        waits
    }

    fn not_synced(&self, kind: Gvk) -> SqlError {
        let common = &self.inner.common;
        let progress = common.kinds.get(&kind);
        let phase = progress.map(|progress| progress.borrow().phase.clone());
        SqlError::NotSynced {
            kind,
            waited: common.wait_timeout,
            phase: phase.unwrap_or_default(),
        }
    }

    fn behind(&self, at: Revision, wanted: u64) -> SqlError {
        SqlError::Query(QueryError::Behind {
            kind: self.schema().gvk().clone(),
            at,
            wanted: Revision::new(wanted, None),
        })
    }
}

impl Inner {
    /// Returns whether the cache is in a file, from which the next process resumes.
    pub(super) fn is_in_file(&self) -> bool {
        self.common.readers.database().is_file()
    }

    /// Waits until fewer queries run than the limit.
    pub(super) async fn reader(&self) -> Reader {
        self.common.readers.reader().await
    }

    fn history(&self) -> Option<Arc<History>> {
        self.history.read().clone()
    }

    /// Returns the revision at which a watch that starts now begins.
    ///
    /// Until the initial list is written, this is the start of the history.
    fn now(&self, history: &History) -> Revision {
        let reached = self.progress.borrow().reached;
        let is_of_it = reached.history == history.number();
        let place = Position {
            history: history.number(),
            change: if is_of_it { reached.change } else { 0 },
        };
        Revision::new(reached.version, Some(place))
    }

    /// Begins to write the kind, with a new history and no pending changes.
    ///
    /// Changes that an earlier turn of this process left unwritten are dropped.
    pub(super) fn begin(&self) -> (Arc<History>, Arc<Unread>) {
        let history = Arc::new(History::new(self.common.history));
        let unread = Arc::<Unread>::default();
        *self.history.write() = Some(Arc::clone(&history));
        *self.unread.write() = Arc::clone(&unread);
        // All objects are read again.
        self.unindexable.lock().clear();
        self.left_out.clear();
        (history, unread)
    }

    /// Ends the history; `is_elsewhere` if another process writes from now on.
    pub(super) fn end(&self, is_elsewhere: bool) {
        let history = if is_elsewhere {
            // Drops the states that are kept for the pending steps.
            *self.unread.write() = Arc::default();
            self.progress
                .send_modify(|progress| progress.without_content = 0);
            self.history.write().take()
        } else {
            self.history()
        };
        if let Some(history) = history {
            history.end(is_elsewhere);
        }
    }
}

impl fmt::Debug for SqlKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlKind")
            .field("schema", self.schema())
            .finish_non_exhaustive()
    }
}

/// Returns the end of a waiting time, limited to thirty years from now.
fn deadline(wait_timeout: Duration) -> Instant {
    let now = Instant::now();
    let far = Duration::from_secs(30 * 365 * 86_400);
    now.checked_add(wait_timeout).unwrap_or_else(|| now + far)
}

/// Counts a query that waits, until it is dropped.
struct Waits<'a>(&'a watch::Sender<usize>);

impl<'a> Waits<'a> {
    fn new(waiting: &'a watch::Sender<usize>) -> Self {
        waiting.send_modify(|count| *count += 1);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
