//! A build without protobuf: bodies in it are refused, and nothing is answered in it.

use bytes::Bytes;
use lariat_apimachinery::object::Object;

use crate::status::ApiError;
use crate::wire::document::Document;

/// Whether this build answers in protobuf.
pub(crate) const IS_BUILT: bool = false;

/// The media types in which objects of built-in kinds are accepted.
pub(crate) const ACCEPTED: &str = "application/json, application/yaml";

/// Refuses a body.
pub(crate) fn read(_: &[u8], _: &str, _: &str) -> Result<Document, ApiError> {
    Err(ApiError::unsupported_media_type(ACCEPTED))
}

/// Measures nothing.
pub(crate) fn size(_: &Object) -> Option<usize> {
    None
}

/// Writes nothing.
pub(crate) fn write(_: &[u8]) -> Option<Bytes> {
    None
}

/// Writes nothing.
pub(crate) fn write_list(_: &[u8], _: impl Iterator<Item = Object>) -> Option<Bytes> {
    None
}

/// Writes nothing.
pub(crate) fn write_event(_: &[u8]) -> Bytes {
    Bytes::new()
}
