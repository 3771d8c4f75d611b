//! The watches that are open.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lariat_apimachinery::kinds::TableId;
use parking_lot::Mutex;
use tokio::time::Instant;

/// A watch that is open.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use k8s_openapi::api::core::v1::Pod;
/// use kube::Api;
/// use lariat::cluster::Cluster;
///
/// let cluster = Cluster::builder().start().await?;
/// let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
/// let _events = pods.watch(&Default::default(), "0").await?;
/// let watches = cluster.inspector().watches();
/// assert_eq!(watches[0].resource, "pods");
/// assert_eq!(watches[0].namespace.as_deref(), Some("default"));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenWatch {
    /// The number of the watch; later watches have higher ones.
    pub id: u64,
    /// The group of the resource, empty for the core group.
    pub group: String,
    /// The kind of the objects.
    pub kind: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The namespace in the path; `None` for all namespaces, and for what has none.
    pub namespace: Option<String>,
    /// The client's `User-Agent`.
    pub client: String,
    /// The name of the user.
    pub user: String,
    /// The time since it was opened, on tokio's clock.
    pub age: Duration,
    /// Objects sent, including the initial state; bookmarks are not counted.
    pub sent: u64,
}

/// All watches that are open.
#[derive(Debug, Default)]
pub(crate) struct OpenWatches {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    /// The number of the last watch there was.
    last: u64,
    watches: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    /// The watch as it began.
    watch: OpenWatch,
    began: Instant,
    table: TableId,
    progress: Arc<Progress>,
}

/// The progress of a watch.
#[derive(Debug, Default)]
// Atomics, so that sending an event takes no lock that all watches share.
struct Progress {
    /// The number of objects it was sent.
    sent: AtomicU64,
    /// The revision up to which it has read.
    read_up_to: AtomicU64,
}

/// The entry of a watch, which goes with it.
#[derive(Debug)]
pub(crate) struct WatchEntry {
    watches: Arc<OpenWatches>,
    id: u64,
    progress: Arc<Progress>,
}

impl OpenWatches {
    /// Adds a watch of a table, whose number, age and count are not used.
    pub(crate) fn enter(self: &Arc<Self>, table: TableId, mut watch: OpenWatch) -> WatchEntry {
        let progress = Arc::<Progress>::default();
        let mut entries = self.entries.lock();
        entries.last += 1;
        let id = entries.last;
        watch.id = id;
        let entry = Entry {
            watch,
            began: Instant::now(),
            table,
            progress: Arc::clone(&progress),
        };
        entries.watches.insert(id, entry);
        WatchEntry {
            watches: Arc::clone(self),
            id,
            progress,
        }
    }

    /// Returns the watches, oldest first.
    pub(crate) fn all(&self) -> Vec<OpenWatch> {
        let entries = self.entries.lock();
        let now = |entry: &Entry| OpenWatch {
            age: entry.began.elapsed(),
            sent: entry.progress.sent.load(Ordering::Relaxed),
            ..entry.watch.clone()
        };
        entries.watches.values().map(now).collect()
    }

    /// Returns, by watched table, the revision that all its watches have read.
    pub(crate) fn read_up_to(&self) -> HashMap<TableId, u64> {
        let mut tables = HashMap::new();
        for entry in self.entries.lock().watches.values() {
            let read = entry.progress.read_up_to.load(Ordering::Relaxed);
            // A watch that has read nothing yet counts as 0, and keeps the whole history of its table.
            let least = tables.entry(entry.table).or_insert(read);
            *least = read.min(*least);
        }
        tables
    }
}

impl WatchEntry {
    /// Counts an object that is sent.
    pub(crate) fn count(&self) {
        self.progress.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes the revision up to which the watch has read.
    pub(crate) fn read_up_to(&self, revision: u64) {
        // The reader of it may see an older number, by which only more history is kept.
        self.progress.read_up_to.store(revision, Ordering::Relaxed);
    }
}

impl Drop for WatchEntry {
    fn drop(&mut self) {
        self.watches.entries.lock().watches.remove(&self.id);
    }
}
