//! A cache in PostgreSQL, which replicas share.

mod faults;
mod replicas;
mod sealed;
mod server;
mod stage;
