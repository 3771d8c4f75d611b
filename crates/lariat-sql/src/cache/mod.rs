//! The cache: its kinds, and the tasks that fill them.

mod error;
mod feed;
mod kind;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::SharedCacheFactory;
use lariat_core::Gvk;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use error::SqlError;
pub use kind::{Answer, Count, Found, SqlKind, SqlStatus};

use crate::schema::Schema;
use crate::sqlite::{Database, Readers, Tables, Writer};

/// How many changes of a kind are kept for watches, by default.
const HISTORY: usize = 1000;

/// How long a query waits for a revision, by default.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many queries read at a time, by default.
const READERS: usize = 4;

/// The state of some kinds in SQL, filled by the informers of a [`SharedCacheFactory`].
///
/// Each kind is one more reader of its informer; no watch is opened for it that is not there already. Changes are written
/// in their order, many at a time, by tasks that the informers never wait for.
///
/// ```no_run
/// use lariat_cache::SharedCacheFactory;
/// use lariat_core::Gvk;
/// use lariat_sql::{Field, FieldType, Query, Schema, SqlCache, field};
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
/// Dropping it stops the tasks; [`stop`](Self::stop) waits until what they have begun to write is written.
pub struct SqlCache {
    kinds: HashMap<Gvk, SqlKind>,
    tasks: Mutex<JoinSet<()>>,
    stopping: CancellationToken,
}

impl SqlCache {
    /// Begins to configure a cache of kinds of a factory.
    #[must_use]
    pub fn builder(factory: &SharedCacheFactory) -> SqlCacheBuilder {
        SqlCacheBuilder {
            factory: factory.clone(),
            schemas: Vec::new(),
            path: None,
            history: HISTORY,
            patience: PATIENCE,
            readers: READERS,
        }
    }

    /// Returns a kind, to be asked.
    ///
    /// # Errors
    ///
    /// The cache does not have the kind.
    pub fn kind(&self, gvk: &Gvk) -> Result<SqlKind, SqlError> {
        self.kinds.get(gvk).cloned().ok_or_else(|| {
            let mut known: Vec<String> = self.kinds.keys().map(ToString::to_string).collect();
            known.sort();
            let kind = gvk.clone();
            SqlError::UnknownKind { kind, known }
        })
    }

    /// Returns all kinds, in no order.
    pub fn kinds(&self) -> impl Iterator<Item = &SqlKind> {
        self.kinds.values()
    }

    /// Returns the state of all kinds, in the order of their names.
    #[must_use]
    pub fn status(&self) -> Vec<SqlStatus> {
        let mut all: Vec<SqlStatus> = self.kinds.values().map(SqlKind::status).collect();
        all.sort_by_cached_key(|status| status.kind.to_string());
        all
    }

    /// Stops the tasks, and waits until what they have begun to write is written.
    ///
    /// Watches end. Queries go on to be answered, with what was written last.
    ///
    /// # Cancel safety
    ///
    /// The tasks stop even if the future is dropped.
    pub async fn stop(&self) {
        self.stopping.cancel();
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

/// Configures a [`SqlCache`].
#[derive(Debug)]
#[must_use = "a builder does nothing until it starts"]
pub struct SqlCacheBuilder {
    factory: SharedCacheFactory,
    schemas: Vec<Schema>,
    path: Option<PathBuf>,
    history: usize,
    patience: Duration,
    readers: usize,
}

impl SqlCacheBuilder {
    /// Adds a kind.
    pub fn kind(mut self, schema: Schema) -> Self {
        self.schemas.push(schema);
        self
    }

    /// Keeps everything in this file, which only its owner can read.
    ///
    /// The next process finds it there, and writes only what has changed meanwhile. Two processes cannot share a file.
    pub fn in_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Keeps everything in memory (default).
    pub fn in_memory(mut self) -> Self {
        self.path = None;
        self
    }

    /// Keeps so many changes of each kind for watches that go on from a revision (default 1,000; zero: none).
    pub fn history(mut self, changes: usize) -> Self {
        self.history = changes;
        self
    }

    /// Lets queries wait so long for the first sync and for [a revision](crate::Query::at_least) (default 10 s).
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Lets so many queries be answered at a time (default 4; zero counts as one).
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.max(1);
        self
    }

    /// Opens the file and starts to fill it, as soon as the factory starts its informers.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or a kind was added twice.
    pub async fn start(self) -> Result<SqlCache, SqlError> {
        let mut seen = HashMap::new();
        for schema in &self.schemas {
            if seen.insert(schema.gvk().clone(), ()).is_some() {
                let kind = schema.gvk().clone();
                return Err(SqlError::KindTwice { kind });
            }
        }
        let database = self
            .path
            .map_or_else(Database::in_memory, Database::in_file);
        let (schemas, readers) = (self.schemas, self.readers);
        let opened = feed::blocking(move || {
            let mut writer = Writer::open(&database)?;
            let mut layouts = Vec::with_capacity(schemas.len());
            for schema in schemas {
                let (layout, _) = writer.open_kind(&schema)?;
                layouts.push((layout, schema));
            }
            Ok((writer, layouts, Readers::new(database, readers)))
        });
        let (writer, layouts, readers) = opened.await?;
        let (writer, readers) = (Arc::new(Mutex::new(writer)), Arc::new(readers));
        let (mut kinds, mut tasks) = (HashMap::new(), JoinSet::new());
        let stopping = CancellationToken::new();
        let of_namespaces = Gvk::new("", "v1", "Namespace");
        let namespaces = layouts
            .iter()
            .find(|(_, schema)| *schema.gvk() == of_namespaces);
        let namespaces = namespaces.map(|(layout, _)| layout.clone());
        for (layout, schema) in layouts {
            let informer = self.factory.for_kind(schema.gvk().clone());
            let namespaces = namespaces.clone();
            let tables = Tables {
                layout,
                schema,
                namespaces,
            };
            let kind = SqlKind::new(tables, self.history, &readers, self.patience);
            let feed = feed::Feed::new(&kind, informer, &writer);
            tasks.spawn(feed.run(stopping.clone()));
            kinds.insert(kind.schema().gvk().clone(), kind);
        }
        Ok(SqlCache {
            kinds,
            tasks: Mutex::new(tasks),
            stopping,
        })
    }
}
