//! The issuer of tokens, and the keys by which others verify them, as documents of OpenID Connect.
//!
//! Source: `k8s.io/kubernetes/pkg/routes/openidmetadata.go` and `pkg/serviceaccount/openidmetadata.go`.

use http::header::{CACHE_CONTROL, HeaderValue};
use http::{Method, StatusCode};

use super::incoming::IncomingRequest;
use crate::access::AUDIENCE;
use crate::server::Server;
use crate::status::ApiError;
use crate::wire::body::ResponseBody;
use crate::wire::negotiate::accepts;
use crate::wire::reply::Reply;

pub(super) const CONFIGURATION: &str = "/.well-known/openid-configuration";
pub(super) const KEY_SET: &str = "/openid/v1/jwks";

/// The `Cache-Control` of these documents.
const CACHED: &str = "public, max-age=3600";

/// Answers the configuration: the issuer of tokens, and the URL of the keys.
pub(super) fn configuration(
    server: &Server,
    incoming: &IncomingRequest,
) -> Result<Reply, ApiError> {
    let signer = server.access.tokens.signer();
    // In the order of Go's members.
    let document = format!(
        r#"{{"issuer":"{AUDIENCE}","jwks_uri":"{}{KEY_SET}","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["{}"]}}"#,
        server.access.origin,
        signer.algorithm()
    );
    let document = server.has_openid().then_some(document);
    answer(incoming, "application/json", document)
}

/// Returns the keys of tokens.
pub(super) fn key_set(server: &Server, incoming: &IncomingRequest) -> Result<Reply, ApiError> {
    let keys = server.access.tokens.signer().key_set();
    answer(incoming, "application/jwk-set+json", keys)
}

fn answer(
    incoming: &IncomingRequest,
    media_type: &'static str,
    document: Option<String>,
) -> Result<Reply, ApiError> {
    let document = document.ok_or_else(ApiError::page_not_found)?;
    if incoming.method() != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    if !accepts(incoming.accept(), media_type) {
        return Err(ApiError::not_acceptable(media_type));
    }
    let body = ResponseBody::whole(document);
    let reply = Reply::new(StatusCode::OK, HeaderValue::from_static(media_type), body);
    Ok(reply.header(CACHE_CONTROL, CACHED))
}
