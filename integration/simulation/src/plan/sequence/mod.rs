//! Happenings in an order and at distances that chance alone seldom has.
//!
//! Each sequence is about one kind in one process. How long its parts take is up to the seed, so that it also misses
//! its point in ways worth trying.

mod patterns;
mod sequence;

pub(super) use sequence::{Pattern, Sequence, Subject};
