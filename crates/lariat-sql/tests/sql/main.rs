//! The cache on a cluster in memory.

mod associated;
mod bench;
mod crash;
mod damage;
mod feed;
mod progress;
mod sealed;
mod watch;
