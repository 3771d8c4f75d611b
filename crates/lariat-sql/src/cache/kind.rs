//! One kind of the cache, as those who ask it see it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use parking_lot::{Mutex, RwLock};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio::time::{self, Instant};

use super::error::SqlError;
use super::feed::blocking;
use super::keys::SharedKeys;
use crate::access::Access;
use crate::query::{Cursor, Part, Plan, Query, QueryError};
use crate::revision::{Place, Revision};
use crate::schema::Schema;
use crate::sql::StorageError;
use crate::store::{Reached, Read, ReadError, Readers, Tables};
use crate::watch::{History, Watch, WatchError};

/// A kind of a [`SqlCache`](crate::SqlCache), which answers queries and can be watched. Clones are cheap.
#[derive(Clone)]
pub struct SqlKind {
    inner: Arc<Inner>,
    /// What may be seen: an object that all of them allow.
    accesses: Arc<[Access]>,
}

/// What all kinds of a cache have in common.
pub(super) struct KindOptions {
    pub(super) readers: Arc<Readers>,
    pub(super) keys: Option<SharedKeys>,
    pub(super) patience: Duration,
    /// How many changes are kept for watches.
    pub(super) history: usize,
    /// Notified when a query begins to wait.
    pub(super) wanted: Arc<Notify>,
}

pub(super) struct Inner {
    pub(super) tables: Tables,
    /// The changes since this process began to write; none while another does.
    history: RwLock<Option<Arc<History>>>,
    /// How many changes it keeps.
    limit: usize,
    readers: Arc<Readers>,
    keys: Option<SharedKeys>,
    patience: Duration,
    wanted: Arc<Notify>,
    pub(super) progress: watch::Sender<Progress>,
    /// Queries that wait for a version.
    pub(super) waiting: watch::Sender<usize>,
    /// How often each field had no usable value, by its place.
    pub(super) unindexable: Mutex<BTreeMap<usize, u64>>,
}

/// How far a kind is.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    pub(super) is_synced: bool,
    pub(super) reached: Reached,
    /// How long the last change took from its informer to its transaction, at most.
    pub(super) lag: Duration,
    /// Changes that wait to be written.
    pub(super) unwritten: usize,
    /// What its informer is at.
    pub(super) phase: String,
    pub(super) last_error: Option<String>,
}

/// What a query finds: objects, counts and the revision, all of one state of the cache.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Answer {
    /// The objects, in the order of the query.
    pub objects: Vec<Found>,
    /// How many objects meet the conditions, on all pages; none where the query asks for a limit or for all.
    pub total: Option<u64>,
    /// What the next query takes as [`after`](Query::after); none at the end, and where no limit was asked for.
    pub next: Option<String>,
    /// From where a watch goes on behind this state.
    pub revision: Revision,
    /// What was counted, for each [summary](Query::summarize) of the query.
    pub summaries: Vec<Vec<Count>>,
}

/// An object that was found. Its content is not shown in debug form.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its resource version.
    pub version: String,
    /// The object as JSON, as it is [cached](lariat_cache::CachedObject::json).
    pub json: Vec<u8>,
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found")
            .field("key", &self.key)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Found {
    /// Reads the object as a type.
    ///
    /// # Errors
    ///
    /// The object does not fit the type.
    pub fn decode<K: DeserializeOwned>(&self) -> Result<K, serde_json::Error> {
        serde_json::from_slice(&self.json)
    }
}

/// How many objects have a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// The value.
    pub value: String,
    /// The namespace of the objects, if the query counts [by namespace](Query::summarize_by_namespace).
    pub namespace: Option<String>,
    /// How many there are.
    pub objects: u64,
}

/// The state of a kind of the cache.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SqlStatus {
    /// The kind.
    pub kind: Gvk,
    /// Whether everything that its informer read first is written.
    pub is_synced: bool,
    /// Up to where it is written.
    pub revision: Revision,
    /// How many changes wait to be written.
    pub unwritten: usize,
    /// How long the last changes took from the informer to the end of their transaction, at most.
    pub lag: Duration,
    /// How often the value of a field could not be indexed, by the field's name; those objects have no value there.
    pub unindexable: BTreeMap<String, u64>,
    /// What goes wrong with writing, if anything does.
    pub last_error: Option<String>,
}

impl From<Read> for Answer {
    fn from(read: Read) -> Self {
        let found = read.found.into_iter().filter_map(|found| {
            Some(Found {
                key: found.key.parse().ok()?,
                version: found.version,
                json: found.json,
            })
        });
        let counts = read.summaries.into_iter().map(|counts| {
            let counts = counts.into_iter().map(|count| Count {
                value: count.value,
                namespace: count.namespace,
                objects: count.objects,
            });
            counts.collect()
        });
        Self {
            objects: found.collect(),
            total: read.total,
            next: read.next,
            revision: read.revision,
            summaries: counts.collect(),
        }
    }
}

impl SqlKind {
    pub(super) fn new(tables: Tables, options: &KindOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                tables,
                history: RwLock::default(),
                limit: options.history,
                readers: Arc::clone(&options.readers),
                keys: options.keys.clone(),
                patience: options.patience,
                wanted: Arc::clone(&options.wanted),
                progress: watch::Sender::default(),
                waiting: watch::Sender::default(),
                unindexable: Mutex::default(),
            }),
            accesses: Arc::default(),
        }
    }

    /// Returns the kind as a user sees it, who may see no more than this.
    ///
    /// Objects that are not allowed are in no answer, total, count or event. A kind that is restricted again allows what
    /// both do. The access is that of this moment: ask [`AccessReviews`](crate::AccessReviews) again for later queries, and
    /// end watches when it changes.
    #[must_use]
    pub fn restricted(&self, access: Access) -> Self {
        let accesses = self.accesses.iter().cloned().chain([access]);
        Self {
            inner: Arc::clone(&self.inner),
            accesses: accesses.collect(),
        }
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
    /// It waits for the first sync of the kind, and for the revision that the query asks for, as long as the
    /// [patience](crate::SqlCacheBuilder::patience) of the cache lasts.
    ///
    /// # Errors
    ///
    /// The query names an unknown field or a value of another type, the cache is not there in time, or its file cannot be
    /// read.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn query(&self, query: &Query) -> Result<Answer, SqlError> {
        let plan = Plan::new(self.schema(), query, &self.accesses)?;
        let label = plan.namespaces.as_ref().and_then(|it| it.label.clone());
        if let Some(label) = label {
            let why = if self.inner.tables.sealed.is_some() {
                "name the namespaces of an encrypted kind"
            } else if self.inner.tables.namespaces.is_none() {
                "add the kind v1 Namespace to the cache, and do not encrypt it"
            } else {
                ""
            };
            if !why.is_empty() {
                return Err(QueryError::NamespaceLabel { label, why }.into());
            }
        }
        let at_least = self.at_least(query, &plan)?;
        self.answer(Arc::new(plan), at_least).await
    }

    /// Answers a query, once there is one state of the kind that is new enough.
    async fn answer(&self, plan: Arc<Plan>, at_least: u64) -> Result<Answer, SqlError> {
        let deadline = Instant::now() + self.inner.patience;
        loop {
            self.reach(at_least, deadline).await?;
            let reader = self.inner.readers.reader().await;
            let (inner, plan) = (Arc::clone(&self.inner), Arc::clone(&plan));
            match blocking(move || Ok(reader.read(&inner.tables, &plan))).await? {
                Ok(read) => return Ok(read.into()),
                // Another process has begun to write it.
                Err(ReadError::Unfilled) => {
                    let progress = &self.inner.progress;
                    progress.send_modify(|progress| progress.is_synced = false);
                }
                Err(ReadError::Storage(error)) => {
                    let is_sealed = matches!(error, StorageError::Seal(_));
                    let keys = self.inner.keys.as_ref().filter(|_| is_sealed);
                    // Another process may have made new ones.
                    let are_new = match keys {
                        Some(keys) => keys.refresh().await?,
                        None => false,
                    };
                    if !are_new {
                        return Err(error.into());
                    }
                }
                Err(ReadError::Query(error)) => return Err(error.into()),
            }
        }
    }

    /// Watches what a query finds from a revision of an [`Answer`] or an event on.
    ///
    /// Only the conditions of the query count. Without a revision it begins now.
    ///
    /// # Errors
    ///
    /// The query names an unknown field or a value of another type, or what happened since the revision is not kept any
    /// more: list again. Of replicas that share a cache only the one that writes it has watches.
    pub fn watch(&self, query: &Query, since: Option<Revision>) -> Result<Watch, WatchError> {
        let schema = self.schema();
        let plan = Plan::new(schema, query, &self.accesses)?;
        if let Some(label) = plan.namespaces.as_ref().and_then(|it| it.label.clone()) {
            let why = "name the namespaces of a watch";
            return Err(QueryError::NamespaceLabel { label, why }.into());
        }
        let Some(history) = self.inner.history() else {
            let kind = schema.gvk().clone();
            return Err(WatchError::Elsewhere { kind });
        };
        let since = since.unwrap_or_else(|| self.revision());
        Watch::new(schema, plan, &history, since)
    }

    /// Returns up to where the kind is written.
    #[must_use]
    pub fn revision(&self) -> Revision {
        let Reached {
            version,
            history,
            change,
        } = self.inner.progress.borrow().reached;
        Revision::new(version, Some(Place { history, change }))
    }

    /// Returns the state of the kind.
    #[must_use]
    pub fn status(&self) -> SqlStatus {
        let progress = self.inner.progress.borrow().clone();
        let unindexable = self.inner.unindexable.lock();
        let fields = self.schema().fields();
        SqlStatus {
            kind: self.schema().gvk().clone(),
            is_synced: progress.is_synced,
            revision: self.revision(),
            unwritten: progress.unwritten,
            lag: progress.lag,
            unindexable: unindexable
                .iter()
                .map(|(place, count)| (fields[*place].name().to_owned(), *count))
                .collect(),
            last_error: progress.last_error,
        }
    }

    /// Returns which version the query has to be answered at.
    fn at_least(&self, query: &Query, plan: &Plan) -> Result<u64, QueryError> {
        let asked = query.at_least.map_or(0, Revision::version);
        let Part::After {
            cursor: Some(cursor),
            ..
        } = &plan.part
        else {
            return Ok(asked);
        };
        // Another replica may have made it, which was ahead of this one.
        let cursor = Cursor::read(cursor, plan, plan.keys())?;
        Ok(asked.max(cursor.revision.version()))
    }

    /// Waits until the kind is synced and at a version.
    async fn reach(&self, wanted: u64, deadline: Instant) -> Result<(), SqlError> {
        let is_there =
            |progress: &Progress| progress.is_synced && progress.reached.version >= wanted;
        if is_there(&self.inner.progress.borrow()) {
            return Ok(());
        }
        let _waits = Waits::new(&self.inner.waiting);
        self.inner.wanted.notify_one();
        let mut progress = self.inner.progress.subscribe();
        let patience = self.inner.patience;
        let reached = time::timeout_at(deadline, progress.wait_for(is_there)).await;
        match reached {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(_)) => return Err(SqlError::Stopped),
            Err(_) => {}
        }
        let kind = self.schema().gvk().clone();
        let progress = self.inner.progress.borrow().clone();
        if !progress.is_synced {
            return Err(SqlError::NotSynced {
                kind,
                waited: patience,
                phase: progress.phase,
            });
        }
        Err(SqlError::Query(QueryError::Behind {
            kind,
            at: self.revision(),
            wanted: Revision::new(wanted, None),
        }))
    }
}

impl Inner {
    fn history(&self) -> Option<Arc<History>> {
        self.history.read().clone()
    }

    /// Begins a history, with which this process writes the kind.
    pub(super) fn begin(&self) -> Arc<History> {
        let history = Arc::new(History::new(self.limit));
        *self.history.write() = Some(Arc::clone(&history));
        history
    }

    /// Ends it; `is_elsewhere` if another process writes the kind from now on.
    pub(super) fn end(&self, is_elsewhere: bool) {
        let history = if is_elsewhere {
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

/// Counts a query that waits.
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
