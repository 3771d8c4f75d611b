//! The cache: its kinds, and the tasks that fill them.

mod error;
mod feed;
mod kind;
mod unread;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::SharedCacheFactory;
use lariat_core::Gvk;
use lariat_seal::{KeyWrapper, Keyring, Sealing, is_always_sealed};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use error::SqlError;
pub use kind::{Answer, Count, Found, SqlKind, SqlStatus};

use crate::schema::Schema;
use crate::sealed::Keys;
use crate::sqlite::{Database, Lock, Readers, StorageError, Tables, Writer};

/// How many changes of a kind are kept for watches, by default.
const HISTORY: usize = 1000;

/// How long a query waits for a revision, by default.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the lock of a file is tried again, and how long after: 2 s in all.
const LOCK_TRIES: u32 = 40;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

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
    writer: Arc<Mutex<Writer>>,
    keys: Option<Keys>,
    kinds: HashMap<Gvk, SqlKind>,
    tasks: Mutex<JoinSet<()>>,
    stopping: CancellationToken,
}

impl SqlCache {
    /// Begins to configure a cache of kinds of a factory.
    pub fn builder(factory: &SharedCacheFactory) -> SqlCacheBuilder {
        SqlCacheBuilder {
            factory: factory.clone(),
            schemas: Vec::new(),
            path: None,
            history: HISTORY,
            patience: PATIENCE,
            readers: READERS,
            sealing: None,
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

    /// Encrypts with a new data key from now on; what is written already stays as it is, and can be read.
    ///
    /// The key that wraps the data keys is another: where it was rotated, the next start wraps them again.
    ///
    /// # Errors
    ///
    /// The cache has no key, or the new key cannot be made or stored; the one before stays in use.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the key is rotated or not.
    pub async fn rotate_data_key(&self) -> Result<(), SqlError> {
        let Some(keys) = self.keys.clone() else {
            return Err(SqlError::NotSealed);
        };
        let writer = Arc::clone(&self.writer);
        let rotated = feed::blocking(move || {
            // One after the other: none may replace what another has stored.
            let writer = writer.lock();
            let keyring = keys.current().rotated().map_err(StorageError::from)?;
            writer.store_keyring(keyring.stored())?;
            keys.replace(keyring);
            Ok(())
        });
        rotated.await
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

/// Lets all kinds find namespaces by their labels, if the cache has the kind `Namespace`.
fn join_namespaces(opened: &mut [Tables]) {
    let of_namespaces = Gvk::new("", "v1", "Namespace");
    let mut plain = opened.iter().filter(|tables| tables.sealed.is_none());
    let namespaces = plain.find(|tables| *tables.schema.gvk() == of_namespaces);
    let namespaces = namespaces.map(|tables| tables.layout.clone());
    for tables in opened {
        tables.namespaces.clone_from(&namespaces);
    }
}

/// Takes the lock of a file; waits a moment for a cache that was dropped, and may finish a write.
async fn lock(database: &Database) -> Result<Option<Lock>, SqlError> {
    let mut tries = 0;
    loop {
        let to_lock = database.clone();
        match feed::blocking(move || Ok(to_lock.lock()?)).await {
            Err(SqlError::Storage(StorageError::InUse { .. })) if tries < LOCK_TRIES => {
                tries += 1;
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            locked => return locked,
        }
    }
}

/// Reads the keys of encrypted kinds, or makes them; wraps them again where the key that wraps them has changed.
async fn keyring(stored: Option<&[u8]>, wrapper: &dyn KeyWrapper) -> Result<Keyring, SqlError> {
    let keyring = match stored {
        None => Keyring::create(wrapper).await,
        Some(stored) => match Keyring::load(stored, wrapper).await {
            Ok(keyring) if !keyring.is_wrapped_by(wrapper) => keyring.rewrapped(wrapper).await,
            loaded => loaded,
        },
    };
    Ok(keyring.map_err(StorageError::from)?)
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

/// A database that is open, with the tables of each kind.
struct Opened {
    writer: Writer,
    keys: Option<Keys>,
    tables: Vec<Tables>,
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
    sealing: Option<Arc<Sealing>>,
}

impl SqlCacheBuilder {
    /// Adds a kind.
    pub fn kind(mut self, schema: Schema) -> Self {
        self.schemas.push(schema);
        self
    }

    /// Keeps everything in this file, which only its owner can read.
    ///
    /// The next process finds it there, and writes only what has changed meanwhile. Tables of kinds that the cache does not have
    /// any more are dropped. A second cache cannot have the file: a lock on `<path>-lock` keeps it out.
    pub fn in_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Keeps everything in memory (default).
    pub fn in_memory(mut self) -> Self {
        self.path = None;
        self
    }

    /// Encrypts kinds: those which the sealing names, or all, and Secrets in any case.
    ///
    /// Of an encrypted kind nothing can be read in the file, neither fields nor names; how many objects there are, and how
    /// long they are, can. Queries open all rows of the kind in memory, some microseconds each. Without a sealing, a cache in a
    /// file cannot have Secrets.
    pub fn sealed(mut self, sealing: Sealing) -> Self {
        self.sealing = Some(Arc::new(sealing));
        self
    }

    /// Keeps so many changes of each kind for watches that go on from a revision (default 1,000; zero: none).
    pub fn history(mut self, changes: usize) -> Self {
        self.history = changes;
        self
    }

    /// Lets queries wait so long for the first sync and for [a revision](crate::Query::at_least) (default 10 s; zero: they fail at once).
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
    /// The file cannot be opened, another cache uses it (after 2 s), a kind was added twice, or is to be encrypted and the key is missing or not the one that
    /// the file was encrypted with.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing runs, and the file is left as after a kill.
    pub async fn start(self) -> Result<SqlCache, SqlError> {
        self.check()?;
        let database = match &self.path {
            Some(path) => Database::in_file(path),
            None => Database::in_memory(),
        };
        let Opened {
            writer,
            keys,
            tables: mut opened,
        } = self.open(&database).await?;
        join_namespaces(&mut opened);
        let readers = Arc::new(Readers::new(database, self.readers));
        let writer = Arc::new(Mutex::new(writer));
        let (mut kinds, mut tasks) = (HashMap::new(), JoinSet::new());
        let stopping = CancellationToken::new();
        for tables in opened {
            let informer = self.factory.for_kind(tables.schema.gvk().clone());
            let kind = SqlKind::new(tables, self.history, &readers, self.patience);
            let feed = feed::Feed::new(&kind, informer, &writer, &stopping);
            tasks.spawn(feed.run());
            kinds.insert(kind.schema().gvk().clone(), kind);
        }
        Ok(SqlCache {
            writer,
            keys,
            kinds,
            tasks: Mutex::new(tasks),
            stopping,
        })
    }

    /// Opens the file, the keys of encrypted kinds, and the tables of all kinds.
    async fn open(&self, database: &Database) -> Result<Opened, SqlError> {
        let lock = lock(database).await?;
        let to_open = database.clone();
        let kinds = self.schemas.iter().map(|schema| schema.gvk().to_string());
        let kinds: Vec<String> = kinds.collect();
        let writer = feed::blocking(move || {
            let mut writer = Writer::open(&to_open, lock)?;
            writer.keep_only(&kinds)?;
            let stored = writer.keyring()?;
            Ok((writer, stored))
        });
        let (mut writer, stored) = writer.await?;
        let keys = match &self.sealing {
            None => None,
            Some(sealing) => Some(Keys::new(
                keyring(stored.as_deref(), sealing.wrapper()).await?,
            )),
        };
        let schemas = self
            .schemas
            .iter()
            .map(|schema| (schema.clone(), self.seals(schema.gvk())));
        let schemas: Vec<(Schema, bool)> = schemas.collect();
        let opened = feed::blocking(move || {
            if let Some(keys) = &keys {
                // Before anything is sealed with it.
                writer.store_keyring(keys.current().stored())?;
            }
            let mut tables = Vec::with_capacity(schemas.len());
            for (schema, is_sealed) in schemas {
                let (layout, sealed) =
                    writer.open_kind(&schema, keys.as_ref().filter(|_| is_sealed))?;
                tables.push(Tables {
                    layout,
                    schema,
                    sealed,
                    namespaces: None,
                });
            }
            Ok(Opened {
                writer,
                keys,
                tables,
            })
        });
        opened.await
    }

    /// Returns an error if the kinds cannot be kept so.
    fn check(&self) -> Result<(), SqlError> {
        let mut seen = HashSet::new();
        for schema in &self.schemas {
            let kind = schema.gvk().clone();
            if !seen.insert(kind.clone()) {
                return Err(SqlError::KindTwice { kind });
            }
            if self.path.is_some() && is_always_sealed(&kind) && !self.seals(&kind) {
                return Err(SqlError::NoKey { kind });
            }
        }
        Ok(())
    }

    fn seals(&self, kind: &Gvk) -> bool {
        let sealing = self.sealing.as_ref();
        sealing.is_some_and(|sealing| sealing.seals(kind))
    }
}
