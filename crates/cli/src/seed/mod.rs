//! `--seed`: objects from files.

mod apply;
mod document;
mod read;

pub(crate) use apply::apply;
pub(crate) use document::Document;
pub(crate) use read::read;
