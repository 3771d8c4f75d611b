//! Watching what a query finds.

mod history;
mod watch;

pub(crate) use history::{ObjectState, Event, History};
pub use watch::{Watch, WatchError, WatchEvent, Watched};
