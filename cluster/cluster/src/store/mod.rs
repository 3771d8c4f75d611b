//! The store: objects by resource and key, one revision for all, and the history.
//!
//! A write takes the lock, checks that the object is still what the writer saw, stamps the next
//! revision and appends one event. It wakes one task, the [dispatcher](Store::dispatch), whatever the
//! number of watchers; these are cursors into the history and read at their own pace.

mod commits;
mod counts;
#[cfg_attr(not(feature = "sqlite"), path = "durability_off.rs")]
mod durability;
mod encode;
mod history;
mod object;
#[cfg(feature = "load")]
mod placeholders;
mod range;
mod retention;
mod snapshot;
mod state;
mod store;
mod template;
#[cfg(test)]
mod tests;
mod write;

pub use commits::{Commit, StoredObject};
pub(crate) use counts::TableCounts;
pub(crate) use durability::NotDurable;
#[cfg(feature = "sqlite")]
pub(crate) use durability::{Batch, LoggedChange, Record};
pub(crate) use history::Event;
pub(crate) use object::{Draft, EventType, METADATA_HEAD, Stored};
pub(crate) use range::{Page, Range};
pub(crate) use retention::{ReadLimit, Retention};
pub use snapshot::Snapshot;
pub(crate) use store::Store;
pub(crate) use template::Template;
pub(crate) use write::{Change, Changes, Ending, Signal, Write, WriteError};
