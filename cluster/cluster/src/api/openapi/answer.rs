//! Answers requests for documents.

use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, EXPIRES, LAST_MODIFIED, LOCATION, VARY};
use lariat_apimachinery::kinds::Catalog;

use super::encoding::DocumentEncoding;
use super::{document, v2};
use crate::api::etag;
use crate::api::incoming::IncomingRequest;
use crate::server::Server;
use crate::wire::reply::Reply;

/// For how long a document under its digest is good.
const YEAR: u64 = 365 * 24 * 3600;

/// Answers the index of v3, which an aggregator writes: as text, without a tag.
///
/// Source: `specProxier.handleDiscovery` in `k8s.io/kube-aggregator/pkg/controllers/openapiv3/aggregator`.
pub(crate) fn answer_index(server: &Server, catalog: &Catalog) -> Reply {
    let index = document::index(catalog, server.has_openid());
    Reply::text(StatusCode::OK, index).header(LAST_MODIFIED, &server.clock.now_in_http())
}

/// Answers a document of v3.
///
/// Its URL in the index has its digest; under another one the client is sent to the right one.
pub(crate) fn answer(
    server: &Server,
    catalog: &Catalog,
    incoming: &IncomingRequest,
    path: &str,
) -> Reply {
    let digest = document::digest_of(catalog, server.has_openid(), path);
    let Some(digest) = digest else {
        return Reply::empty(StatusCode::NOT_FOUND);
    };
    let Some(encoding) = DocumentEncoding::negotiate(incoming.accept(), &[DocumentEncoding::Json])
    else {
        return not_acceptable();
    };
    let wanted = incoming.query.text("hash").unwrap_or_default();
    if !wanted.is_empty() && wanted != digest {
        let url = document::url(path, &digest);
        let reply = Reply::empty(StatusCode::MOVED_PERMANENTLY);
        let reply = reply.header(CONTENT_TYPE, "application/json");
        return reply.header(LOCATION, &url).tag(&etag::quoted(&digest));
    }
    let reply = etag::tagged_as(&digest, incoming.known_tags(), || {
        let bytes = document::document(catalog, path).unwrap_or_default();
        Reply::compressed(encoding.content_type(), bytes, incoming.accepts_gzip())
            .header(LAST_MODIFIED, &server.clock.now_in_http())
    });
    if wanted.is_empty() {
        return reply;
    }
    // Under this URL nothing else will ever be found: another document has another digest.
    let reply = reply.header(CACHE_CONTROL, "public, immutable");
    reply.header(EXPIRES, &server.clock.later_in_rfc1123(YEAR))
}

fn not_acceptable() -> Reply {
    Reply::empty(StatusCode::NOT_ACCEPTABLE).header(VARY, "Accept")
}

/// Answers the document of v2.
pub(crate) fn answer_v2(server: &Server, catalog: &Catalog, incoming: &IncomingRequest) -> Reply {
    let both = [DocumentEncoding::Json, DocumentEncoding::Protobuf];
    let Some(encoding) = DocumentEncoding::negotiate(incoming.accept(), &both) else {
        return not_acceptable();
    };
    etag::tagged_as(v2::digest(catalog), incoming.known_tags(), || {
        let bytes = v2::document(catalog, encoding);
        Reply::compressed(encoding.content_type(), bytes, incoming.accepts_gzip())
            .header(LAST_MODIFIED, &server.clock.now_in_http())
    })
}
