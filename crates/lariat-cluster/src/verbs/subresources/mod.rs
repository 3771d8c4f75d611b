//! Subresources: parts of objects, and actions on them.

mod binding;
mod body;
mod dispatch;
mod eviction;
mod scale;

pub(super) use dispatch::{answer, check};
