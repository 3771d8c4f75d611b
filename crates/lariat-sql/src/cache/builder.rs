//! How a cache is kept.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::SharedCacheFactory;
use lariat_core::Gvk;
use lariat_seal::{Sealing, is_always_sealed};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::keys::SharedKeys;
use super::kind::{Common, Progress};
#[cfg(feature = "postgres")]
use super::replica::Replica;
use super::{SqlCache, SqlError, SqlKind, columns, feed};
use crate::association::Associated;
#[cfg(feature = "postgres")]
use crate::postgres::Postgres;
use crate::schema::Schema;
use crate::sql::StorageError;
use crate::store::{Database, Readers, Tables, Writer, tables};

/// How many changes of a kind are kept for watches, by default.
const HISTORY: usize = 1000;

/// How long a query waits for a revision, by default.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a file that is in use is tried again, and how long after: 2 s in all.
const IN_USE_TRIES: u32 = 40;
const IN_USE_PAUSE: Duration = Duration::from_millis(50);

/// How many queries read at a time, by default.
const READERS: usize = 4;

/// Configures a [`SqlCache`].
#[derive(Debug)]
#[must_use = "a builder does nothing until it starts"]
pub struct SqlCacheBuilder {
    factory: SharedCacheFactory,
    schemas: Vec<Schema>,
    /// Kinds whose printer columns are added to their schemas.
    with_columns: Vec<Gvk>,
    place: Place,
    history: usize,
    patience: Duration,
    readers: usize,
    sealing: Option<Arc<Sealing>>,
}

/// Where a cache is kept.
#[derive(Debug)]
enum Place {
    Memory,
    File(PathBuf),
    #[cfg(feature = "postgres")]
    Postgres(Postgres),
}

impl SqlCacheBuilder {
    pub(super) fn new(factory: &SharedCacheFactory) -> Self {
        Self {
            factory: factory.clone(),
            schemas: Vec::new(),
            with_columns: Vec::new(),
            place: Place::Memory,
            history: HISTORY,
            patience: PATIENCE,
            readers: READERS,
            sealing: None,
        }
    }

    /// Adds a kind.
    pub fn kind(mut self, schema: Schema) -> Self {
        self.schemas.push(schema);
        self
    }

    /// Adds a kind, and its printer columns as fields if a CustomResourceDefinition defines it.
    ///
    /// The definition is read once, when the cache starts; see [`Schema::with_columns`]. Built-in kinds have no such columns.
    /// Replicas that share a cache keep the kind apart while they have read different columns.
    pub fn kind_with_columns(mut self, schema: Schema) -> Self {
        self.with_columns.push(schema.gvk().clone());
        self.kind(schema)
    }

    /// Keeps everything in this file, which only its owner can read.
    ///
    /// The next process finds it there, and writes only what has changed meanwhile. Tables of kinds that the cache does not have
    /// any more are dropped. A second cache cannot have the file: a lock on `<path>-lock` keeps it out.
    pub fn in_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.place = Place::File(path.into());
        self
    }

    /// Keeps everything in a database of a PostgreSQL server, which replicas of the program share.
    ///
    /// One of them writes, and the others only read: they have no informers of their own for it, and their queries are
    /// answered as those of the one that writes. A query that waits for a revision looks for it every 20 ms. A watch begins
    /// only where the cache is written; elsewhere it is refused with an error that says so. All replicas need the same
    /// fields. When another begins to write, queries wait until it has written what differs.
    #[cfg(feature = "postgres")]
    pub fn in_postgres(mut self, options: Postgres) -> Self {
        self.place = Place::Postgres(options);
        self
    }

    /// Keeps everything in memory (default).
    pub fn in_memory(mut self) -> Self {
        self.place = Place::Memory;
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
    ///
    /// Each has a connection of its own, which is opened when it is needed first. With PostgreSQL a replica has one more.
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.max(1);
        self
    }

    /// Opens the database and starts to fill it, as soon as the factory starts its informers.
    ///
    /// # Errors
    ///
    /// The file or the server cannot be used, or another cache uses the file (after 2 s); a kind was added twice, or is to be
    /// encrypted and the key is missing or not the one that was used there; the other kind of an association is not in the
    /// cache, does not have the field or is encrypted; or printer columns cannot be read.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing runs.
    pub async fn start(mut self) -> Result<SqlCache, SqlError> {
        self.check()?;
        for schema in &mut self.schemas {
            if self.with_columns.contains(schema.gvk()) {
                let (clients, patience) = (self.factory.clients(), self.patience);
                *schema = columns::add(schema.clone(), clients, patience).await?;
            }
        }
        let schemas = self.schemas.iter();
        let associated = schemas.map(|schema| self.associated(schema));
        let associated: Vec<Vec<Associated>> = associated.collect::<Result<_, _>>()?;
        let database = match &self.place {
            Place::Memory => Database::in_memory(),
            Place::File(path) => Database::in_file(path),
            #[cfg(feature = "postgres")]
            Place::Postgres(options) => Database::on_server(options.clone()),
        };
        let mut writer = open(&database).await?;
        let mut keys = None;
        if let Some(sealing) = &self.sealing {
            let opened;
            (opened, writer) = SharedKeys::open(&database, sealing, writer).await?;
            keys = Some(opened);
        }
        let wanted = Arc::default();
        let tables = self.tables(&database, keys.as_ref(), associated);
        let kinds = self.kinds(&database, keys.as_ref(), &wanted, tables);
        #[cfg(feature = "postgres")]
        if let Place::Postgres(options) = &self.place {
            let replica = Replica {
                database,
                kinds,
                keys,
                leadership: options.leadership(),
                factory: self.factory,
                wanted,
            };
            return Ok(replica.start(writer));
        }
        self.start_alone(writer, kinds, keys).await
    }

    /// Names the tables of all kinds, which are the same for all who have the same fields.
    fn tables(
        &self,
        database: &Database,
        keys: Option<&SharedKeys>,
        associated: Vec<Vec<Associated>>,
    ) -> Vec<Tables> {
        let opened = self.schemas.iter().zip(associated);
        let opened = opened.map(|(schema, associated)| {
            let is_sealed = self.seals(schema.gvk());
            let keys = keys.filter(|_| is_sealed).map(|keys| &keys.keys);
            let (layout, sealed) = tables(database.dialect(), schema, keys);
            Tables {
                layout,
                schema: schema.clone(),
                sealed,
                namespaces: None,
                associated,
                joined: Vec::new(),
            }
        });
        let mut opened: Vec<Tables> = opened.collect();
        join(&mut opened);
        opened
    }

    /// Makes the kinds of these tables, each of which knows how far the others are.
    fn kinds(
        &self,
        database: &Database,
        keys: Option<&SharedKeys>,
        wanted: &Arc<Notify>,
        tables: Vec<Tables>,
    ) -> Vec<SqlKind> {
        let opened = tables.into_iter();
        let opened = opened.map(|tables| (tables, watch::Sender::default()));
        let opened: Vec<(Tables, watch::Sender<Progress>)> = opened.collect();
        let kinds = opened.iter();
        let kinds =
            kinds.map(|(tables, progress)| (tables.schema.gvk().clone(), progress.subscribe()));
        let common = Common {
            readers: Arc::new(Readers::new(database.clone(), self.readers)),
            keys: keys.cloned(),
            patience: self.patience,
            history: self.history,
            wanted: Arc::clone(wanted),
            kinds: Arc::new(kinds.collect()),
        };
        let kinds = opened.into_iter();
        kinds
            .map(|(tables, progress)| SqlKind::new(tables, progress, &common))
            .collect()
    }

    /// Starts to fill what no other process has.
    async fn start_alone(
        self,
        mut writer: Writer,
        kinds: Vec<SqlKind>,
        keys: Option<SharedKeys>,
    ) -> Result<SqlCache, SqlError> {
        let of_kinds = kinds.clone();
        let writer = feed::blocking(move || {
            let names: Vec<String> = of_kinds
                .iter()
                .map(|kind| kind.schema().gvk().to_string())
                .collect();
            writer.keep_only(&names)?;
            for kind in of_kinds {
                writer.open_kind(&kind.inner().tables)?;
            }
            Ok(Arc::new(Mutex::new(writer)))
        });
        let writer = writer.await?;
        let stopping = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for kind in &kinds {
            let informer = self.factory.for_kind(kind.schema().gvk().clone());
            let feed = feed::Feed::new(kind, informer, &writer, &stopping);
            tasks.spawn(feed.run());
        }
        let kinds = kinds.into_iter();
        Ok(SqlCache {
            writer: Some(writer),
            keys,
            writes: watch::Sender::new(true).subscribe(),
            kinds: kinds
                .map(|kind| (kind.schema().gvk().clone(), kind))
                .collect(),
            tasks: Mutex::new(tasks),
            stopping,
        })
    }

    /// Returns an error if the kinds cannot be kept so.
    fn check(&self) -> Result<(), SqlError> {
        let mut seen = HashSet::new();
        for schema in &self.schemas {
            let kind = schema.gvk().clone();
            if !seen.insert(kind.clone()) {
                return Err(SqlError::KindTwice { kind });
            }
            if !matches!(self.place, Place::Memory) && is_always_sealed(&kind) && !self.seals(&kind)
            {
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

/// Opens a database for writing; waits a moment for a cache of the same file that was dropped, and may finish a write.
async fn open(database: &Database) -> Result<Writer, SqlError> {
    let mut tries = 0;
    loop {
        let to_open = database.clone();
        match feed::blocking(move || Ok(Writer::open(&to_open)?)).await {
            Err(SqlError::Storage(StorageError::InUse { .. })) if tries < IN_USE_TRIES => {
                tries += 1;
                tokio::time::sleep(IN_USE_PAUSE).await;
            }
            opened => return opened,
        }
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
