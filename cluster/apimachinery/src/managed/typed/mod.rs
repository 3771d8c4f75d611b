//! Operations on values of a known type.
//!
//! Source: `sigs.k8s.io/structured-merge-diff/v6/typed`.

mod compare;
mod fields;
mod items;
mod merge;
mod parts;
mod remove;
mod validate;

pub(super) use compare::{Difference, compare};
pub(super) use fields::fields;
pub(super) use merge::merge;
pub(super) use remove::remove;
pub(super) use validate::{fits, validate, validate_present};
