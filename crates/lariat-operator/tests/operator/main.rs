//! Operators against the embedded cluster.

mod bench;

mod apply_claims;
mod apply_faults;
mod apply_places;
mod apply_restart;
mod apply_rig;
mod apply_rights;
mod apply_sets;
mod apply_stale;
mod cached_api;
mod crd_faults;
mod crds;
mod events_bench;
mod events_faults;
mod events_written;
mod finalizing;
mod finalizing_faults;
mod guard;
mod guard_collections;
mod guard_faults;
mod guard_nothing;
mod permissions;
mod permissions_settings;
mod planning;
mod program;
mod reconciling;
mod reconciling_ends;
mod status_reports;
mod status_writing;
mod transformed;
