//! Reviews, which are answered and not stored: access, tokens, the user itself.

mod access;
mod dispatch;
mod question;
mod token;

pub(super) use dispatch::{answer, is_review};
