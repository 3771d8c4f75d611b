//! Reviews, which are answered and not stored: access, tokens, the user itself.

mod access;
mod dispatch;
mod review;
mod token;

pub(super) use dispatch::{answer, is_review};
