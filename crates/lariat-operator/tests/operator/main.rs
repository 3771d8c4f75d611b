//! Operators against the embedded cluster.

mod bench;

mod cached_api;
mod crds;
mod finalizing;
mod finalizing_faults;
mod permissions;
mod reconciling;
mod status_reports;
mod status_writing;
