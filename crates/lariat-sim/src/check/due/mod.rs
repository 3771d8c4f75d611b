//! Calls that must come: what was enqueued, asked for, has failed or was dropped.

mod delays;
mod promise;
mod promises;

pub(super) use promises::Promises;
