//! Keys that are enqueued because something else changed.

mod relation;
mod watch;

pub use relation::Relation;
pub use watch::Related;
