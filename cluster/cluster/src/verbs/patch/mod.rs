//! PATCH of an object or a subresource.

mod apply;
mod change;
mod identity;

pub(super) use apply::{check_duplicates, read as read_applied};
#[cfg(feature = "fuzzing")]
pub(crate) use change::patched;
pub(super) use change::{APPLY, Change, is_patch, patch};
