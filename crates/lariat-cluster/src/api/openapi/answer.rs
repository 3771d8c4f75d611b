//! Answers requests for documents.

use http::StatusCode;
use http::header::{CACHE_CONTROL, EXPIRES, LOCATION};
use lariat_apimachinery::kinds::Catalog;

use super::encoding::DocumentEncoding;
use super::{document, v2};
use crate::api::etag;
use crate::api::incoming::IncomingRequest;
use crate::server::Server;
use crate::status::ApiError;
use crate::wire::reply::Reply;

/// For how long a document under its digest is good.
const YEAR: u64 = 365 * 24 * 3600;

/// Answers a document of v3.
///
/// Its URL in the index has its digest; under another one the client is sent to the right one.
pub(crate) fn answer(
    server: &Server,
    catalog: &Catalog,
    incoming: &IncomingRequest,
    path: &str,
) -> Result<Reply, ApiError> {
    let digest = document::digest_of(catalog, server.has_openid(), path);
    let digest = digest.ok_or_else(ApiError::page_not_found)?;
    let Some(encoding) = DocumentEncoding::negotiate(incoming.accept(), &[DocumentEncoding::Json])
    else {
        return Ok(Reply::empty(StatusCode::NOT_ACCEPTABLE));
    };
    let wanted = incoming.query.text("hash").unwrap_or_default();
    if !wanted.is_empty() && wanted != digest {
        let url = document::url(path, &digest);
        let reply = Reply::empty(StatusCode::MOVED_PERMANENTLY);
        return Ok(reply.header(LOCATION, &url).tag(&digest));
    }
    let reply = etag::tagged_as(&digest, incoming.known_tags(), || {
        let bytes = document::document(catalog, path).unwrap_or_default();
        Reply::compressed(encoding.content_type(), bytes, incoming.accepts_gzip())
    });
    if wanted.is_empty() {
        return Ok(reply);
    }
    // Under this URL nothing else will ever be found: another document has another digest.
    let reply = reply.header(CACHE_CONTROL, "public, immutable");
    Ok(reply.header(EXPIRES, &server.clock.later_in_http(YEAR)))
}

/// Answers the document of v2.
pub(crate) fn answer_v2(catalog: &Catalog, incoming: &IncomingRequest) -> Reply {
    let both = [DocumentEncoding::Json, DocumentEncoding::Protobuf];
    let Some(encoding) = DocumentEncoding::negotiate(incoming.accept(), &both) else {
        return Reply::empty(StatusCode::NOT_ACCEPTABLE);
    };
    etag::tagged_as(v2::digest(catalog), incoming.known_tags(), || {
        let bytes = v2::document(catalog, encoding);
        Reply::compressed(encoding.content_type(), bytes, incoming.accepts_gzip())
    })
}
