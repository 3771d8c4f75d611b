//! GET of a collection.

mod page;
mod pages;

pub(crate) use page::ListPage;
pub(super) use pages::{list, parse_version, present, wait_for};
