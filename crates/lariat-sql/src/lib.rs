//! The state of a cluster, to be asked by SQL: filtered, sorted, paged, counted and watched.
//!
//! A kind of the cache is one more reader of its shared informer, so there is no second watch. What is indexed of its objects
//! is written to SQLite behind the informer, and never holds it up.
//!
//! | feature | adds |
//! |---|---|
//! | `http` | `http::SqlService`, the cache over HTTP: a read-only API with authentication, server-sent events and a page to browse it |

mod access;
mod association;
mod cache;
mod columns;
mod field;
mod query;
mod revision;
mod row;
mod schema;
mod sealed;
mod sql;
mod sqlite;
mod watch;

pub use access::{Access, AccessError, AccessReviews, User, Verb};
pub use association::Association;
pub use cache::{Answer, Count, Found, SqlCache, SqlCacheBuilder, SqlError, SqlKind, SqlStatus};
pub use field::{Field, FieldType, Path, PathError, Quantity, Value, ValueError};
pub use query::{
    AnyOf, Condition, Operator, PROJECT_LABEL, Query, QueryError, Subject, UrlError, associated,
    field, label,
};
pub use revision::{Revision, RevisionError};
pub use schema::{Schema, SchemaError};
pub use sqlite::StorageError;
pub use watch::{Watch, WatchError, WatchEvent, Watched};

#[cfg(feature = "http")]
pub mod http;
