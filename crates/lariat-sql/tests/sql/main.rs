//! The cache on a cluster in memory.

mod bench;
mod feed;
mod watch;
