//! Required calls: for keys that were enqueued or requeued, have failed or were dropped.

mod delays;
mod promise;
mod promises;

pub(super) use promises::Promises;
