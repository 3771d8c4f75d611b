//! Sealed kinds: their rows are encrypted, including the names of objects.
//!
//! A row is found by keyed hashes of its key and its namespace. Conditions, orders and counts are computed in memory
//! from the rows that a query may see by these hashes, which it decrypts: some microseconds each.

mod narrow;
mod read;
mod renew;
mod row;
mod write;

use std::sync::Arc;

use lariat_core::{Gvk, ObjectKey};
use lariat_seal::{Context, Keyring};
use tokio::sync::watch;

use crate::sql::Dialect;

pub(crate) use read::{keys, page, read};
pub(crate) use renew::{Renewed, renew, rows};
pub(crate) use row::LONGEST;
pub(crate) use write::write;

/// The keys of a cache, which can be rotated while it is used.
#[derive(Debug, Clone)]
pub(crate) struct Keys(watch::Sender<Arc<Keyring>>);

impl Keys {
    pub(crate) fn new(keyring: Keyring) -> Self {
        Self(watch::Sender::new(Arc::new(keyring)))
    }

    pub(crate) fn current(&self) -> Arc<Keyring> {
        Arc::clone(&self.0.borrow())
    }

    pub(crate) fn is_current(&self, keyring: &Arc<Keyring>) -> bool {
        Arc::ptr_eq(&self.0.borrow(), keyring)
    }

    /// Encrypts with other keys from now on, if `before` is still in use.
    ///
    /// They must have been stored.
    pub(crate) fn replace(&self, before: &Arc<Keyring>, keyring: Keyring) {
        self.0.send_if_modified(|current| {
            let is_before = Arc::ptr_eq(current, before);
            if is_before {
                *current = Arc::new(keyring);
            }
            is_before
        });
    }

    /// Returns a receiver that is notified when other keys are used.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<Keyring>> {
        self.0.subscribe()
    }
}

/// A table of encrypted rows.
#[derive(Debug, Clone)]
pub(crate) struct Sealed {
    pub(crate) table: String,
    pub(crate) kind: Gvk,
    pub(crate) keys: Keys,
    pub(crate) dialect: Dialect,
    /// The largest indexed part of a row in bytes; see [`LONGEST`].
    pub(crate) longest: usize,
}

/// The keyed hashes by which a row is found, and to which its values are bound.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    key: Vec<u8>,
    namespace: Vec<u8>,
}

impl Sealed {
    /// Returns the statements that create the table.
    pub(crate) fn create(&self) -> String {
        let table = &self.table;
        let (id, bytes) = match self.dialect {
            Dialect::Sqlite => ("INTEGER PRIMARY KEY", "BLOB"),
            Dialect::Postgres => ("bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "bytea"),
        };
        format!(
            "CREATE TABLE {table} (id {id}, hash {bytes} NOT NULL UNIQUE, namespace {bytes} NOT NULL,
                content {bytes} NOT NULL, json {bytes} NOT NULL);
             CREATE INDEX {table}_by ON {table} (namespace);"
        )
    }

    /// Returns the place of an object's row.
    fn place(&self, key: &ObjectKey) -> Place {
        Place {
            key: self.key(key),
            namespace: self.namespace(key.namespace().unwrap_or_default()),
        }
    }

    /// Returns the hash that represents a key in the table.
    fn key(&self, key: &ObjectKey) -> Vec<u8> {
        self.hash("lariat-sql key", key.as_str())
    }

    /// Returns the hash that represents a namespace in the table.
    ///
    /// The namespace of cluster-scoped objects is empty.
    fn namespace(&self, name: &str) -> Vec<u8> {
        self.hash("lariat-sql namespace", name)
    }

    fn hash(&self, of: &str, text: &str) -> Vec<u8> {
        let context = Context::new(of).and(self.kind.to_string());
        let hash = self.keys.current().keyed_hash(&context, text.as_bytes());
        hash.to_vec()
    }

    /// Returns the context of an encrypted value, which binds it to its place.
    fn context(&self, place: &Place, column: &str) -> Context {
        let kind = self.kind.to_string();
        Context::new("lariat-sql row")
            .and(kind)
            .and(&place.key)
            .and(&place.namespace)
            .and(column)
    }
}
