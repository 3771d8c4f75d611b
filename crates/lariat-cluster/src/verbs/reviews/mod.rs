//! Kinds that are asked, not kept: who am I, may I, whose token is this.

mod access;
mod dispatch;
mod question;
mod token;

pub(super) use dispatch::{answer, is_review};
