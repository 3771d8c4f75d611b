//! A build without protobuf: bodies in it are refused.

use crate::status::ApiError;
use crate::wire::document::Document;

/// The media types in which objects of built-in kinds are accepted.
pub(super) const ACCEPTED: &str = "application/json, application/yaml";

/// Refuses a body.
pub(super) fn read(_: &[u8], _: &str, _: &str) -> Result<Document, ApiError> {
    Err(ApiError::unsupported_media_type(ACCEPTED))
}
