//! The numbers of objects and changes in the store.

use std::collections::BTreeMap;

use lariat_apimachinery::kinds::TableId;

use super::Store;
use super::retention::Retention;
use super::state::ResourceTable;

/// The numbers for one resource.
#[derive(Debug)]
pub(crate) struct TableCounts {
    pub(crate) table: TableId,
    /// Objects by namespace; cluster-scoped ones are under the empty name.
    pub(crate) namespaces: BTreeMap<String, usize>,
    /// The size of the objects as they are encoded.
    pub(crate) bytes: usize,
    /// The number of changes that are kept, and their memory.
    pub(crate) changes: usize,
    pub(crate) history_bytes: usize,
    /// The oldest version from which a watch may go on.
    pub(crate) oldest: u64,
}

impl Store {
    /// Counts the objects of each resource, and locks one resource at a time.
    pub(crate) fn counts(&self) -> Vec<TableCounts> {
        // Tables are only ever added, so their number stays good after the lock is given back.
        let tables = self.state.lock().tables.len();
        // One lock for each table: to count a large one keeps writers waiting, and so must not last for all of them.
        let counts = |at| TableCounts::of(TableId(at), &self.state.lock().tables[at]);
        (0..tables).map(counts).collect()
    }

    /// Returns the limits of the history.
    pub(crate) fn retention(&self) -> Retention {
        self.state.lock().retention
    }
}

impl TableCounts {
    fn of(id: TableId, table: &ResourceTable) -> Self {
        let mut namespaces = BTreeMap::new();
        let mut bytes = 0;
        // Keys are in the order of their namespaces, so that a name is copied once for all its objects.
        let mut current: Option<(&str, usize)> = None;
        for (key, stored) in &table.objects {
            bytes += stored.size();
            let namespace = key.namespace().unwrap_or_default();
            match &mut current {
                Some((name, count)) if *name == namespace => *count += 1,
                _ => {
                    add(&mut namespaces, current.replace((namespace, 1)));
                }
            }
        }
        add(&mut namespaces, current);
        Self {
            table: id,
            namespaces,
            bytes,
            changes: table.history.len(),
            history_bytes: table.history.bytes(),
            oldest: table.history.floor(),
        }
    }
}

fn add(namespaces: &mut BTreeMap<String, usize>, counted: Option<(&str, usize)>) {
    if let Some((name, count)) = counted {
        *namespaces.entry(name.to_owned()).or_default() += count;
    }
}
