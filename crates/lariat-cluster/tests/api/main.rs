//! The API as a client sees it, over the in-process service and on paused time.

mod bench;

mod abuse;
mod access;

mod compression;
mod discovery;
mod fault_reads;
mod fault_rules;
mod fault_watches;
mod fault_writes;
mod kinds;
mod metadata;
mod reads;
mod sockets;
mod tables;
mod watches;
mod writes;
