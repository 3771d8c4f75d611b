//! The cache on a cluster in memory.

mod associated;
mod bench;
mod columns;
mod crash;
mod damage;
mod defects;
mod feed;
mod progress;
mod restart;
mod sealed;
mod watch;
