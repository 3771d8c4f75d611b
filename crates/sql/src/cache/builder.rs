//! The builder of a cache: its options, and its start.

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

use super::blocking::blocking;
use super::kept::Kept;
use super::keys::SharedKeys;
use super::kind::{Common, Progress};
use super::renewal::Renewal;

#[cfg(feature = "postgres")]
use super::replica::Replica;
use super::{SqlCache, SqlError, SqlKind, columns, feed};
use crate::associated::Associated;
#[cfg(feature = "postgres")]
use crate::postgres::Postgres;
use crate::schema::Schema;
use crate::sql::StorageError;
#[cfg(feature = "postgres")]
use crate::store::edition;
use crate::store::{Database, Readers, Tables, Writer, tables};

/// The default number of changes of a kind that are kept for watches.
const HISTORY: usize = 1000;

/// The default time that a query waits for a revision.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How often opening a file that is in use is tried; with the pause, for 2 s.
const IN_USE_TRIES: u32 = 40;
const IN_USE_PAUSE: Duration = Duration::from_millis(50);

/// The default timeout of a query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(30);

/// The default number of queries that run at a time.
const READERS: usize = 4;

/// Configures a [`SqlCache`].
///
/// ```no_run
/// use std::time::Duration;
/// use lariat::cache::SharedCacheFactory;
/// use lariat::sql::{Schema, SqlCache};
/// use lariat::Gvk;
///
/// # async fn example(factory: &SharedCacheFactory) -> Result<(), Box<dyn std::error::Error>> {
/// let sql = SqlCache::builder(factory)
///     .kind(Schema::new(Gvk::new("", "v1", "Pod"), [])?)
///     .in_file("/var/cache/shop/objects.db")
///     .query_timeout(Duration::from_secs(5))
///     .start()
///     .await?;
/// # let _ = sql;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until it starts"]
pub struct SqlCacheBuilder {
    factory: SharedCacheFactory,
    schemas: Vec<Schema>,
    place: Location,
    history: usize,
    wait_timeout: Duration,
    query_timeout: Duration,
    readers: usize,
    sealing: Option<Arc<Sealing>>,
}

/// Where a cache is stored.
#[derive(Debug)]
enum Location {
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
            place: Location::Memory,
            history: HISTORY,
            wait_timeout: TIMEOUT,
            query_timeout: QUERY_TIMEOUT,
            readers: READERS,
            sealing: None,
        }
    }

    /// Adds a kind.
    ///
    /// The printer columns of the kind's CRD become fields too, unless the schema is [without
    /// them](Schema::without_columns). The CRD is read once, when the cache starts; see [`Schema::with_columns`]. If it
    /// does not exist yet, or may not be read, a warning is logged and the schema is used unchanged.
    pub fn kind(mut self, schema: Schema) -> Self {
        self.schemas.push(schema);
        self
    }

    /// Stores everything in a file that only its owner can read.
    ///
    /// The next process reads it, and writes only what has changed since. Tables of kinds that the cache no longer has
    /// are dropped. The lock file `<path>-lock` prevents a second cache from using the file.
    pub fn in_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.place = Location::File(path.into());
        self
    }

    /// Stores everything in PostgreSQL, which replicas of the program share.
    ///
    /// One replica writes. The others only read: they run no informers for the cache, and answer queries from the same
    /// rows. A query that waits for a revision polls for it every 20 ms. Only the writing replica has watches; on the
    /// others they fail with [`WatchError::Elsewhere`](crate::WatchError::Elsewhere). When another replica takes over
    /// writing, queries wait until it has written the differences.
    ///
    /// Replicas whose kinds or fields differ, as during an update of the program or of a CRD, use separate tables and
    /// keys in the same schema, and one replica writes each set of tables. With a
    /// [leadership](Postgres::written_by_leader) the leader alone writes, and queries of replicas whose kinds or fields
    /// differ from its own fail until one of them leads.
    /// Tables that no replica has used for an hour are dropped by a replica that writes.
    #[cfg(feature = "postgres")]
    pub fn in_postgres(mut self, options: Postgres) -> Self {
        self.place = Location::Postgres(options);
        self
    }

    /// Stores everything in memory, which is the default.
    pub fn in_memory(mut self) -> Self {
        self.place = Location::Memory;
        self
    }

    /// Encrypts kinds: those that the sealing selects, and always Secrets.
    ///
    /// The file shows the number and length of encrypted objects, and which of them are in one namespace, but neither
    /// fields nor names. Queries decrypt rows in memory, some microseconds each: those of the namespaces and names that
    /// the [access](crate::SqlKind::restricted) and the query allow, or all rows of the kind. Without a sealing, a
    /// cache in a file cannot contain Secrets.
    pub fn sealed(mut self, sealing: Sealing) -> Self {
        self.sealing = Some(Arc::new(sealing));
        self
    }

    /// Sets how many changes of each kind are kept for watches (default 1,000).
    ///
    /// A watch can resume from a revision as long as all changes after it are kept. At most 32 MiB of states of a kind
    /// are kept, however many changes those are. With zero no change is kept, and a watch fails at the first change.
    pub fn history(mut self, changes: usize) -> Self {
        self.history = changes;
        self
    }

    /// Sets how long queries wait for the first sync and for a revision (default 10 s).
    ///
    /// With zero they fail immediately. See [`at_least`](crate::Query::at_least).
    pub fn wait_timeout(mut self, wait_timeout: Duration) -> Self {
        self.wait_timeout = wait_timeout;
        self
    }

    /// Sets the timeout of queries (default 30 s; zero means none).
    ///
    /// The time starts when the cache is new enough for the query, and includes waiting for other queries. A query
    /// whose future is dropped is interrupted immediately.
    pub fn query_timeout(mut self, timeout: Duration) -> Self {
        self.query_timeout = timeout;
        self
    }

    /// Sets how many queries run at a time (default 4; zero counts as one).
    ///
    /// Each uses its own connection, which is opened on first use. With PostgreSQL a replica has one more connection.
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.max(1);
        self
    }

    /// Opens the database, and fills it once the factory starts its informers.
    ///
    /// # Errors
    ///
    /// Fails if
    ///
    /// - the file or the server cannot be used, or another cache uses the file for more than 2 s,
    /// - a kind was added twice, or must be encrypted and the key is missing or another one,
    /// - the other kind of an association is not in the cache, lacks the field or is encrypted,
    /// - printer columns cannot be read.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, no task is started.
    pub async fn start(mut self) -> Result<SqlCache, SqlError> {
        self.check()?;
        for schema in &mut self.schemas {
            // Before anything is opened: the printer columns decide which columns the tables have.
            *schema = columns::add(schema.clone(), self.factory.clients()).await?;
        }
        let schemas = self.schemas.iter();
        let associated: Vec<Vec<Associated>> = schemas
            .map(|schema| self.associated(schema))
            .collect::<Result<_, _>>()?;
        let database = match &self.place {
            Location::Memory => Database::in_memory(),
            Location::File(path) => Database::in_file(path),
            #[cfg(feature = "postgres")]
            Location::Postgres(options) => {
                let kinds = self.schemas.iter().map(|it| (it, self.seals(it.gvk())));
                Database::on_server(options.clone(), self.query_timeout, edition(kinds))
            }
        };
        let readers = Arc::new(Readers::new(database.clone(), self.readers));
        // A file is locked from here on. `open` waits for a process that is about to end.
        let mut writer = open(&database).await?;
        let mut keys = None;
        if let Some(sealing) = &self.sealing {
            let opened;
            (opened, writer) = SharedKeys::open(&readers, sealing, writer).await?;
            keys = Some(opened);
        }
        let wanted = Arc::default();
        let tables = self.tables(&database, keys.as_ref(), associated);
        let kinds = self.kinds(readers, keys.as_ref(), &wanted, tables);
        #[cfg(feature = "postgres")]
        if let Location::Postgres(options) = &self.place {
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

    /// Names the tables of all kinds.
    ///
    /// Processes with the same fields use the same names.
    fn tables(
        &self,
        database: &Database,
        keys: Option<&SharedKeys>,
        associated: Vec<Vec<Associated>>,
    ) -> Vec<Tables> {
        let mut opened: Vec<Tables> = self
            .schemas
            .iter()
            .zip(associated)
            .map(|(schema, associated)| {
                // Some kinds of a sealed cache can be in plain text; only the others need the keys.
                let is_sealed = self.seals(schema.gvk());
                let keys = keys.filter(|_| is_sealed).map(|keys| &keys.keys);
                let (layout, sealed) = tables(database, schema, keys);
                Tables {
                    layout,
                    schema: schema.clone(),
                    sealed,
                    namespaces: None,
                    associated,
                    joined: Vec::new(),
                }
            })
            .collect();
        join(&mut opened);
        opened
    }

    /// Creates the kinds of these tables, each with the progress of the others.
    fn kinds(
        &self,
        readers: Arc<Readers>,
        keys: Option<&SharedKeys>,
        wanted: &Arc<Notify>,
        tables: Vec<Tables>,
    ) -> Vec<SqlKind> {
        let opened: Vec<(Tables, watch::Sender<Progress>)> = tables
            .into_iter()
            .map(|tables| (tables, watch::Sender::default()))
            .collect();
        let kinds = opened
            .iter()
            .map(|(tables, progress)| (tables.schema.gvk().clone(), progress.subscribe()));
        let common = Common {
            readers,
            keys: keys.cloned(),
            wait_timeout: self.wait_timeout,
            query_timeout: self.query_timeout,
            history: self.history,
            wanted: Arc::clone(wanted),
            kinds: Arc::new(kinds.collect()),
        };
        let kinds = opened.into_iter();
        kinds
            .map(|(tables, progress)| SqlKind::new(tables, progress, &common))
            .collect()
    }

    /// Starts to fill a cache that no other process shares.
    async fn start_alone(
        self,
        mut writer: Writer,
        kinds: Vec<SqlKind>,
        keys: Option<SharedKeys>,
    ) -> Result<SqlCache, SqlError> {
        let of_kinds = kinds.clone();
        let writer = blocking(move || {
            let names: Vec<String> = of_kinds
                .iter()
                .map(|kind| kind.schema().gvk().to_string())
                .collect();
            // Tables of kinds that the program no longer has would never be updated again.
            writer.keep_only(&names)?;
            for kind in of_kinds {
                writer.open_kind(&kind.inner().tables)?;
            }
            Ok(Arc::new(Mutex::new(writer)))
        })
        .await?;
        let stopping = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for kind in &kinds {
            let informer = self.factory.for_kind(kind.schema().gvk().clone());
            // A database in memory is empty at the start, so there is nothing to begin with.
            if kind.inner().is_in_file() {
                informer.warm_from(Arc::new(Kept(Arc::clone(kind.inner()))));
            }
            let feed = feed::Feed::new(kind, informer, &writer, &stopping);
            tasks.spawn(feed.run());
        }
        if let Some(keys) = &keys {
            let renewal = Renewal {
                keys: keys.clone(),
                kinds: kinds.clone(),
                writer: Arc::clone(&writer),
                stopping: stopping.clone(),
            };
            tasks.spawn(renewal.run());
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

    /// Fails if a kind was added twice, or needs a key that is missing.
    fn check(&self) -> Result<(), SqlError> {
        let mut seen = HashSet::new();
        for schema in &self.schemas {
            let kind = schema.gvk().clone();
            if !seen.insert(kind.clone()) {
                return Err(SqlError::KindTwice { kind });
            }
            // In memory nothing reaches a disk, so Secrets need no key there.
            if !matches!(self.place, Location::Memory)
                && is_always_sealed(&kind)
                && !self.seals(&kind)
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
            let failed = |reason| SqlError::Association {
                kind: schema.gvk().clone(),
                association: association.name().to_owned(),
                reason,
            };
            // The other kind is read from its table, so it must be in the same cache.
            let Some(known) = known else {
                let reason = format!("{other} is not in the cache: add a schema of it");
                return Err(failed(reason));
            };
            if let Some(sealed) = [schema.gvk(), other].into_iter().find(|it| self.seals(it)) {
                let reason = format!(
                    "{sealed} is encrypted, so nothing can be joined: do not encrypt it, or leave the association out"
                );
                return Err(failed(reason));
            }
            Associated::resolve(association, schema, known).map_err(failed)
        });
        found.collect()
    }

    fn seals(&self, kind: &Gvk) -> bool {
        let sealing = self.sealing.as_ref();
        sealing.is_some_and(|sealing| sealing.seals(kind))
    }
}

/// Opens a database for writing.
///
/// This waits up to 2 s for another cache that uses the file: one that was dropped may still finish a write.
async fn open(database: &Database) -> Result<Writer, SqlError> {
    let mut tries = 0;
    loop {
        let to_open = database.clone();
        match blocking(move || Ok(Writer::open(&to_open)?)).await {
            Err(SqlError::Storage(StorageError::InUse { .. })) if tries < IN_USE_TRIES => {
                tries += 1;
                tokio::time::sleep(IN_USE_PAUSE).await;
            }
            opened => return opened,
        }
    }
}

/// Sets the tables of associated kinds and of `Namespace` for each kind.
///
/// The tables of `Namespace` are for labels of namespaces, if the cache has that kind and does not encrypt it.
fn join(opened: &mut [Tables]) {
    let layouts: HashMap<_, _> = opened
        .iter()
        .map(|tables| (tables.schema.gvk().clone(), tables.layout.clone()))
        .collect();
    let of_namespaces = Gvk::new("", "v1", "Namespace");
    // Names and labels in a sealed table are encrypted, so no query can join it.
    let mut plain = opened.iter().filter(|tables| tables.sealed.is_none());
    let namespaces = plain
        .find(|tables| *tables.schema.gvk() == of_namespaces)
        .map(|tables| tables.layout.clone());
    for tables in opened {
        tables.namespaces.clone_from(&namespaces);
        let others = tables.associated.iter();
        let joined = others.filter_map(|other| layouts.get(other.schema.gvk()).cloned());
        tables.joined = joined.collect();
    }
}
