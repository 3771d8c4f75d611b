//! Informers on the embedded cluster and on scripted servers, in virtual time.

mod bench;
mod script;

mod answers;
mod budget;
mod chaos;
mod compression;
mod content;
mod defects;
mod factory;
mod faults;
mod gates;
mod identity;
mod informer;
#[cfg(feature = "kube-runtime")]
mod kube_runtime;
mod numbers;
mod own_writes;
mod phases;
mod resync;
mod selection;
mod sockets;
mod streams;
mod subscribers;
mod usage;
mod warm;
