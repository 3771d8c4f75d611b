//! The API as a client sees it, over the in-process service and on paused time.

mod bench;

mod abuse;

mod compression;
mod deletion;
mod fault_reads;
mod fault_rules;
mod fault_watches;
mod fault_writes;
mod garbage;
mod kinds;
mod metadata;
mod namespaces;
mod reads;
mod sockets;
mod watches;
mod workloads;
mod writes;
