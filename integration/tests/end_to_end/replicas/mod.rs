//! Replicas of a program that are killed, paused, stopped and cut off, as processes.

mod bench;
mod leaders;
mod shards;
