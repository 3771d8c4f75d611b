//! Controllers on the embedded cluster, in virtual time.

mod bench;

mod content;
mod factory;
mod handlers;
mod lanes;
mod queueing;
mod stopping;
