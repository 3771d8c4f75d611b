//! A cache in PostgreSQL, which replicas share.

mod associated;
mod faults;
mod killed;
mod left_out;
mod replicas;
mod sealed;
mod server;
mod stage;
