//! GET of a collection.

mod form;
mod pages;
mod selection;

pub(super) use pages::{all, list, parse_version, reply, wait_for};
