//! Informers on the embedded cluster and on scripted servers, in virtual time.

mod bench;
mod script;

mod answers;
mod factory;
mod faults;
mod informer;
mod subscribers;
