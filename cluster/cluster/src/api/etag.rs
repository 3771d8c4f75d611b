//! Entity tags (`ETag`) of documents.

use http::StatusCode;
use http::header::HeaderValue;
use sha2::{Digest, Sha512};

use crate::wire::body::ResponseBody;
use crate::wire::reply::Reply;

/// Returns a digest of a document, in hexadecimal digits.
pub(crate) fn digest(document: &[u8]) -> String {
    let bytes = Sha512::digest(document);
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Answers a document with its tag, or 304 if `known` is that tag and nothing else.
///
/// Source: `ServeHTTPWithETag` in `k8s.io/apiserver/pkg/endpoints/discovery/aggregated`.
pub(crate) fn tagged(document: bytes::Bytes, content_type: HeaderValue, known: &str) -> Reply {
    let tag = quoted(&digest(&document));
    let reply = if known == tag {
        Reply::empty(StatusCode::NOT_MODIFIED)
    } else {
        Reply::new(StatusCode::OK, content_type, ResponseBody::whole(document))
    };
    reply.tag(&tag)
}

/// Answers a document of which the digest is known, or 304 if `known` lists its tag, as HTTP has it.
pub(crate) fn tagged_as(digest: &str, known: &str, reply: impl FnOnce() -> Reply) -> Reply {
    let tag = quoted(digest);
    let is_known = known
        .split(',')
        .map(str::trim)
        .any(|each| each == "*" || each.trim_start_matches("W/") == tag);
    let reply = if is_known {
        Reply::empty(StatusCode::NOT_MODIFIED)
    } else {
        reply()
    };
    reply.tag(&tag)
}

/// Returns the tag for a digest.
pub(crate) fn quoted(digest: &str) -> String {
    format!("\"{digest}\"")
}
