//! A cache in PostgreSQL, which replicas share.

mod associated;
mod faults;
mod killed;
mod replicas;
mod sealed;
mod server;
mod stage;
