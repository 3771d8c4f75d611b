//! Watching what a query finds.

mod history;
mod watch;

pub(crate) use history::{Event, History, Newest, Next, Over, State};
pub use watch::{Watch, WatchError, WatchEvent, Watched};
