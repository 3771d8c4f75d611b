//! GET of a collection.

mod page;
mod pages;

pub(crate) use page::ListPage;
pub(super) use pages::{list, read_version, to_delete, wait_for};
