//! Operators against the embedded cluster.

mod bench;

mod finalizing;
mod finalizing_faults;
mod reconciling;
mod status_reports;
mod status_writing;
