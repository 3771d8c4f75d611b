//! Informers on the embedded cluster and on scripted servers, in virtual time.

mod bench;
mod script;

mod answers;
mod bounds;
mod budget;
mod changed_fields;
mod chaos;
mod compression;
mod content;
mod content_filter;
mod content_filter_bench;
mod content_filter_faults;
mod defects;
mod factory;
mod faults;
#[cfg(unix)]
mod fences;
mod former_histories;
mod gates;
mod history;
mod identity;
mod informer;
#[cfg(feature = "kube-runtime")]
mod kube_runtime;
mod numbers;
mod outages;
mod own_writes;
mod own_writes_answers;
mod phases;
mod relists;
mod restores;
mod resync;
mod selection;
mod sockets;
mod stale;
mod starts;
mod streams;
mod subscribers;
mod unserved;
mod unwatchable;
mod usage;
mod waits;
mod warm;
mod warm_restores;
mod warm_sealed;
mod warm_wrappers;
