//! The cache: its kinds, and the tasks that fill them.

mod answer;
mod bare;
mod blocking;
mod builder;
mod cache;
mod columns;
mod covered;
mod error;
mod feed;
mod kept;
mod keys;
mod kind;
#[cfg(feature = "postgres")]
mod replica;
#[cfg(test)]
mod timeout_tests;
mod unread;

pub use answer::{Answer, Count, Found, SqlStatus};
pub use builder::SqlCacheBuilder;
pub use cache::SqlCache;
pub use error::SqlError;
pub use kind::SqlKind;
