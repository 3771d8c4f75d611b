//! Watches of queries.

mod history;
mod watch;

pub(crate) use history::{Event, History, ObjectState};
pub use watch::{Watch, WatchError, WatchEvent, WatchedObject};
