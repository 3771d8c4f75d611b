//! Entity tags (`ETag`) of documents.

use std::hash::{DefaultHasher, Hash, Hasher};

use http::StatusCode;
use http::header::HeaderValue;

use crate::wire::body::ResponseBody;
use crate::wire::reply::Reply;

/// Returns a digest of a document, in hexadecimal digits.
pub(crate) fn digest(document: &[u8]) -> String {
    let part = |salt: u8| {
        // Keyed with zeros: the same document has the same digest in every run.
        let mut hasher = DefaultHasher::new();
        (salt, document).hash(&mut hasher);
        format!("{:016X}", hasher.finish())
    };
    part(0) + &part(1)
}

/// Answers a document with its tag, or 304 if `known` lists the tag.
pub(crate) fn tagged(document: bytes::Bytes, content_type: HeaderValue, known: &str) -> Reply {
    let digest = digest(&document);
    tagged_as(&digest, known, || {
        Reply::new(StatusCode::OK, content_type, ResponseBody::whole(document))
    })
}

/// Answers a document of which the digest is known.
pub(crate) fn tagged_as(digest: &str, known: &str, reply: impl FnOnce() -> Reply) -> Reply {
    let tag = format!("\"{digest}\"");
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
