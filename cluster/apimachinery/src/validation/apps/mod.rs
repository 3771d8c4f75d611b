//! The kinds of the group `apps`.

mod daemon_set;
mod deployment;
mod replica_set;
mod revision;
mod share;
mod stateful_set;
mod template;

pub(super) use daemon_set::daemon_set;
pub(super) use deployment::deployment;
pub(super) use replica_set::replica_set;
pub(super) use revision::controller_revision;
pub(super) use share::check_share;
pub(super) use stateful_set::stateful_set;
pub(super) use template::check_found;
