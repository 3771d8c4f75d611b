//! Subresources: parts of objects, and actions on them.

mod binding;
mod body;
mod connect;
mod dispatch;
mod eviction;
mod scale;

pub(in crate::verbs) use body::read_body;
pub(super) use dispatch::{answer, check};
