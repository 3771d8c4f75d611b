//! Controllers on the embedded cluster, in virtual time.

mod bench;
mod logs;

mod circles;
mod content;
mod enqueueing;
mod factory;
mod guarantees;
mod handler_options;
mod handlers;
mod identities;
mod lanes;
mod lasso;
mod lives;
mod many_kinds;
mod options;
mod outcomes;
mod ported;
mod queueing;
mod races;
mod relations;
mod stopping;
