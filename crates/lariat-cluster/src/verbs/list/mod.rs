//! GET of a collection.

mod page;
mod pages;

pub(crate) use page::ListPage;
pub(super) use pages::{all, list, parse_version, wait_for};
