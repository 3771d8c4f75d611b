//! Relations: changes of one kind that enqueue keys of another.

mod relation;
mod watch;

pub use relation::Relation;
pub use watch::Related;
