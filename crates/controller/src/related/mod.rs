//! Relations: changes of one kind that enqueue keys of another.
//!
//! `relation` maps an object to keys. `watch` connects two kinds: it subscribes to the cache of the one, and adds the
//! keys to the queue of the other.

mod relation;
mod watch;

pub use relation::Relation;
pub use watch::Related;
