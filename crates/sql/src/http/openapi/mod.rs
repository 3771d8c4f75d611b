//! The description of the API in OpenAPI 3.1.

mod document;
mod schemas;

pub(super) use document::document;
