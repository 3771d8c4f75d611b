//! The cache on a cluster in memory.

mod bench;
mod damage;
mod feed;
mod sealed;
mod watch;
