//! The cache: its kinds, and the tasks that fill them.
//!
//! `builder` opens the database and starts a `feed` for each kind, or a `replica` where processes share the database. A
//! feed takes published changes from `unread` and writes them; `fill` deletes rows that an earlier process has left,
//! `covered` maps changes to a resource version, `bare` repeats objects that lacked content. `kind` answers queries and
//! starts watches. `keys` has the keys of encrypted kinds, `renewal` seals rows anew after a rotation, `kept` lets
//! informers resume from a file, `columns` reads printer columns.

mod answer;
mod bare;
mod blocking;
mod builder;
mod cache;
mod columns;
mod covered;
mod error;
mod feed;
mod fill;
mod kept;
mod keys;
mod kind;
mod left_out;
mod renewal;
#[cfg(feature = "postgres")]
mod replica;
#[cfg(test)]
mod timeout_tests;
mod unread;

pub use answer::{Count, FoundObject, QueryResult, SqlStatus};
pub use builder::SqlCacheBuilder;
pub use cache::SqlCache;
pub use error::SqlError;
pub use kind::SqlKind;
