//! Controllers on the embedded cluster, in virtual time.

mod bench;
#[cfg(feature = "metrics")]
mod exposition;

mod content;
mod content_filter;
mod debouncing;
mod electing;
mod electing_bench;
mod electing_deadlines;
mod ending;
mod ending_runs;
mod ending_workers;
mod enqueueing;
mod factory;
mod failing;
mod failing_keys;
mod fencing;
mod gates;
mod giving_up;
mod guarantees;
mod handler_options;
mod handlers;
mod handlers_deletions;
mod histories;
mod hot_loops;
mod hot_loops_absent;
mod hot_loops_related;
mod identities;
mod journeys;
mod kind_states;
mod lanes;
mod lasso;
mod lives;
mod looking;
mod many_kinds;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "metrics")]
mod metrics_lives;
#[cfg(feature = "metrics")]
mod metrics_requests;
mod middleware;
mod options;
mod outcomes;
mod pausing;
mod ported;
mod queueing;
mod races;
mod refused_writes;
mod relations;
mod relations_content;
mod relations_late;
mod sharding;
mod sharding_bench;
mod sharding_members;
mod sharding_waits;
mod stopping;
mod warnings;
