//! A cache of Kubernetes objects in SQL, to filter, sort, page, count and watch them.
//!
//! The cache subscribes to the shared informer of each of its kinds, so there is no second watch. Tasks for which the
//! informer does not wait write objects and their indexed fields to SQLite or PostgreSQL. Queries read one committed
//! state.
//!
//! Start with [`SqlCache`]: its [builder](SqlCacheBuilder) takes a [`Schema`] of [`Field`]s for each kind. A
//! [`SqlKind`] answers a [`Query`] with a [`QueryResult`], and a [`Watch`] reports changes from an answer's
//! [`Revision`] on. [`Access`] restricts what a user sees; [`AccessReviews`] determines it.
//!
//! | feature | adds |
//! |---|---|
//! | `postgres` | `Postgres`, a database in which replicas share one cache, and `SqlCacheBuilder::in_postgres` |
//! | `http` | `http::SqlService`, the cache over HTTP: a read-only API with authentication, server-sent events and a page to browse it |

mod access;
mod associated;
mod association;
mod cache;
mod columns;
mod field;
mod op;
mod param;
#[cfg(feature = "postgres")]
mod postgres;
mod query;
mod read;
mod revision;
mod row;
mod schema;
mod sealed;
mod sql;
mod sqlite;
mod store;
mod watch;

pub use access::{Access, AccessError, AccessReviews, User, Verb};
pub use association::Association;
pub use cache::{
    Count, FoundObject, QueryResult, SqlCache, SqlCacheBuilder, SqlError, SqlKind, SqlStatus,
};
pub use field::{Field, FieldType, Path, PathError, Quantity, Value, ValueError};
#[cfg(feature = "postgres")]
pub use postgres::{Postgres, PostgresError};
pub use query::{
    AnyOf, Condition, Operator, PROJECT_LABEL, Query, QueryError, Subject, UrlError, associated,
    field, label,
};
pub use revision::{Revision, RevisionError};
pub use schema::{Schema, SchemaError};
pub use sql::StorageError;
pub use watch::{Watch, WatchError, WatchEvent, WatchedObject};

#[cfg(feature = "http")]
pub mod http;
