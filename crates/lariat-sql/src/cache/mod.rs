//! The cache: its kinds, and the tasks that fill them.

mod answer;
mod bare;
mod columns;
mod covered;
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
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use answer::{Answer, Count, Found, SqlStatus};
pub use error::SqlError;
pub use kind::SqlKind;
use kind::{Common, Progress};

use crate::association::Associated;
use crate::schema::Schema;
use crate::sealed::Keys;
use crate::sqlite::{Database, Readers, StorageError, Tables, Writer};

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
            with_columns: Vec::new(),
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
    /// The new key cannot be made or stored; the one before stays in use.
    pub async fn rotate_data_key(&self) -> Result<(), SqlError> {
        let Some(keys) = self.keys.clone() else {
            return Ok(());
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

/// Lets all kinds find the tables of those associated with them, and namespaces by their labels if the cache has the kind
/// `Namespace`.
fn join(opened: &mut [Tables]) {
    let layouts = opened.iter();
    let layouts = layouts.map(|tables| (tables.schema.gvk().clone(), tables.layout.clone()));
    let layouts: HashMap<_, _> = layouts.collect();
    let of_namespaces = Gvk::new("", "v1", "Namespace");
    let mut plain = opened.iter().filter(|tables| tables.sealed.is_none());
    let namespaces = plain.find(|tables| *tables.schema.gvk() == of_namespaces);
    let namespaces = namespaces.map(|tables| tables.layout.clone());
    for tables in opened {
        tables.namespaces.clone_from(&namespaces);
        let others = tables.associated.iter();
        let joined = others.filter_map(|other| layouts.get(other.schema.gvk()).cloned());
        tables.joined = joined.collect();
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

/// Configures a [`SqlCache`].
#[derive(Debug)]
#[must_use = "a builder does nothing until it starts"]
pub struct SqlCacheBuilder {
    factory: SharedCacheFactory,
    schemas: Vec<Schema>,
    /// Kinds whose printer columns are added to their schemas.
    with_columns: Vec<Gvk>,
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

    /// Adds a kind, and its printer columns as fields if a CustomResourceDefinition defines it.
    ///
    /// The definition is read once, when the cache starts; see [`Schema::with_columns`]. Built-in kinds have no such columns.
    pub fn kind_with_columns(mut self, schema: Schema) -> Self {
        self.with_columns.push(schema.gvk().clone());
        self.kind(schema)
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
    /// The file cannot be opened; a kind was added twice, or is to be encrypted and the key is missing or not the one that
    /// the file was encrypted with; the other kind of an association is not in the cache, does not have the field or is
    /// encrypted; or printer columns cannot be read.
    pub async fn start(mut self) -> Result<SqlCache, SqlError> {
        self.check()?;
        for schema in &mut self.schemas {
            if self.with_columns.contains(schema.gvk()) {
                let (clients, patience) = (self.factory.clients(), self.patience);
                *schema = columns::add(schema.clone(), clients, patience).await?;
            }
        }
        let mut associated = Vec::with_capacity(self.schemas.len());
        for schema in &self.schemas {
            associated.push(self.associated(schema)?);
        }
        let sealed: Vec<bool> = self
            .schemas
            .iter()
            .map(|schema| self.seals(schema.gvk()))
            .collect();
        let path = self.path;
        let database = path.map_or_else(Database::in_memory, Database::in_file);
        let to_open = database.clone();
        let mut writer = feed::blocking(move || Ok(Writer::open(&to_open)?)).await?;
        let mut keys = None;
        if let Some(sealing) = &self.sealing {
            let stored = writer.keyring()?;
            let keyring = keyring(stored.as_deref(), sealing.wrapper()).await?;
            // Before anything is sealed with it.
            writer.store_keyring(keyring.stored())?;
            keys = Some(Keys::new(keyring));
        }
        let (schemas, of_sealed) = (self.schemas, keys.clone());
        let opened = feed::blocking(move || {
            let mut opened = Vec::with_capacity(schemas.len());
            for ((schema, is_sealed), associated) in schemas.into_iter().zip(sealed).zip(associated)
            {
                let keys = of_sealed.as_ref().filter(|_| is_sealed);
                let (layout, sealed) = writer.open_kind(&schema, keys)?;
                let tables = Tables {
                    layout,
                    schema,
                    sealed,
                    namespaces: None,
                    associated,
                    joined: Vec::new(),
                };
                opened.push(tables);
            }
            Ok((writer, opened))
        });
        let (writer, mut opened) = opened.await?;
        join(&mut opened);
        let parts = Parts {
            factory: self.factory,
            writer: Arc::new(Mutex::new(writer)),
            readers: Arc::new(Readers::new(database, self.readers)),
            history: self.history,
            patience: self.patience,
        };
        Ok(parts.run(opened, keys))
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

    /// Finds the other kinds of a schema's associations.
    fn associated(&self, schema: &Schema) -> Result<Vec<Associated>, SqlError> {
        let associations = schema.associations().iter();
        let found = associations.map(|association| {
            let other = association.kind();
            let known = self.schemas.iter().find(|known| known.gvk() == other);
            let failed = |why| SqlError::Association {
                kind: schema.gvk().clone(),
                association: association.name().to_owned(),
                why,
            };
            let Some(known) = known else {
                let why = format!("{other} is not in the cache: add a schema of it");
                return Err(failed(why));
            };
            if let Some(sealed) = [schema.gvk(), other].into_iter().find(|it| self.seals(it)) {
                let why = format!(
                    "{sealed} is encrypted, so nothing can be joined: do not encrypt it, or leave the association out"
                );
                return Err(failed(why));
            }
            association.resolve(schema, known).map_err(failed)
        });
        found.collect()
    }

    fn seals(&self, kind: &Gvk) -> bool {
        let sealing = self.sealing.as_ref();
        sealing.is_some_and(|sealing| sealing.seals(kind))
    }
}

/// What a cache runs with.
struct Parts {
    factory: SharedCacheFactory,
    writer: Arc<Mutex<Writer>>,
    readers: Arc<Readers>,
    history: usize,
    patience: Duration,
}

impl Parts {
    /// Begins to fill kinds, as soon as the factory starts its informers.
    fn run(self, opened: Vec<Tables>, keys: Option<Keys>) -> SqlCache {
        let (mut kinds, mut tasks) = (HashMap::new(), JoinSet::new());
        let stopping = CancellationToken::new();
        let progress: Vec<watch::Sender<Progress>> =
            opened.iter().map(|_| watch::Sender::default()).collect();
        let of_kinds = opened.iter().zip(&progress);
        let of_kinds =
            of_kinds.map(|(tables, progress)| (tables.schema.gvk().clone(), progress.subscribe()));
        let common = Common {
            readers: self.readers,
            patience: self.patience,
            kinds: Arc::new(of_kinds.collect()),
        };
        for (tables, progress) in opened.into_iter().zip(progress) {
            let informer = self.factory.for_kind(tables.schema.gvk().clone());
            let kind = SqlKind::new(tables, progress, self.history, &common);
            let feed = feed::Feed::new(&kind, informer, &self.writer, &stopping);
            tasks.spawn(feed.run());
            kinds.insert(kind.schema().gvk().clone(), kind);
        }
        SqlCache {
            writer: self.writer,
            keys,
            kinds,
            tasks: Mutex::new(tasks),
            stopping,
        }
    }
}
