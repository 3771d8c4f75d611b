//! Sealed kinds: their rows are encrypted, including the names of objects.
//!
//! A row is found by a keyed hash of its key. Conditions, orders and counts are computed in memory from all rows of the
//! kind, which a query decrypts: some microseconds each.

mod read;
mod row;
mod write;

use std::sync::Arc;

use lariat_core::Gvk;
use lariat_seal::{Context, Keyring};
use parking_lot::RwLock;

use crate::sql::Dialect;

pub(crate) use read::{keys, page, read};
pub(crate) use write::write;

/// The keys of a cache, which can be rotated while it is used.
#[derive(Debug, Clone)]
pub(crate) struct Keys(Arc<RwLock<Arc<Keyring>>>);

impl Keys {
    pub(crate) fn new(keyring: Keyring) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(keyring))))
    }

    pub(crate) fn current(&self) -> Arc<Keyring> {
        Arc::clone(&self.0.read())
    }

    /// Encrypts with other keys from now on; they must be stored before.
    pub(crate) fn replace(&self, keyring: Keyring) {
        *self.0.write() = Arc::new(keyring);
    }
}

/// A table of encrypted rows.
#[derive(Debug, Clone)]
pub(crate) struct Sealed {
    pub(crate) table: String,
    pub(crate) kind: Gvk,
    pub(crate) keys: Keys,
    pub(crate) dialect: Dialect,
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
            "CREATE TABLE {table} (id {id}, hash {bytes} NOT NULL UNIQUE, content {bytes} NOT NULL, json {bytes} NOT NULL);"
        )
    }

    /// Returns the hash that represents a key in the table.
    fn hash(&self, key: &str) -> [u8; 16] {
        let context = Context::new("lariat-sql key").and(self.kind.to_string());
        self.keys.current().keyed_hash(&context, key.as_bytes())
    }

    /// Returns the context of an encrypted value, which binds it to its place.
    fn context(&self, hash: &[u8], column: &str) -> Context {
        let kind = self.kind.to_string();
        Context::new("lariat-sql row")
            .and(kind)
            .and(hash)
            .and(column)
    }
}
