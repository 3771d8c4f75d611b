//! Refusing requests of web pages, where a cluster needs no credentials.
//!
//! A browser reaches what listens on its machine, and runs what any site sends it. A page of another site names that
//! site as its `Origin`. One that has its name resolved to this machine (DNS rebinding) needs none, but sends
//! the name as the host.

use std::net::{IpAddr, SocketAddr};

use http::HeaderValue;
use http::uri::Authority;

use super::incoming::IncomingRequest;
use crate::access::Mode;
use crate::server::Server;
use crate::status::ApiError;

/// Refuses requests that a web page may have sent.
pub(super) fn refuse(server: &Server, incoming: &IncomingRequest) -> Result<(), ApiError> {
    let access = &server.access;
    if incoming.in_process || access.mode != Mode::Open {
        return Ok(());
    }
    if incoming.has_header("origin") {
        let message = "requests of web pages, which have an Origin header, are refused: this cluster is open to \
            everybody who reaches it; let it require a token";
        return Err(ApiError::forbidden_as_a_whole(message));
    }
    // Elsewhere than on a loopback address a cluster may well have a name.
    if access.is_local && !names_no_domain(incoming) {
        let message = "the Host header is refused: this cluster is open to everybody who reaches it, and listens on a \
            loopback address; use the address or localhost, or let it require a token";
        return Err(ApiError::forbidden_as_a_whole(message));
    }
    Ok(())
}

/// Returns whether all hosts that a request names are IP addresses or `localhost`.
fn names_no_domain(incoming: &IncomingRequest) -> bool {
    let (mut named, authority) = incoming.hosts();
    // HTTP/2 has the host in `:authority`, which is a part of the URI here.
    named.all(is_address_header) && authority.is_none_or(is_address_or_localhost)
}

/// Returns whether a `Host` header has an IP address or `localhost`.
fn is_address_header(host: &HeaderValue) -> bool {
    // The usual forms, which need no copy of the header.
    let text = host.to_str().unwrap_or_default();
    text.parse::<SocketAddr>().is_ok()
        || text == "localhost"
        || Authority::try_from(host.as_bytes()).is_ok_and(|host| is_address_or_localhost(&host))
}

/// Returns whether a host means this machine without a look at a name server.
fn is_address_or_localhost(authority: &Authority) -> bool {
    let host = authority.host();
    let inside = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_address = inside.unwrap_or(host).parse::<IpAddr>().is_ok();
    is_address || host.trim_end_matches('.').eq_ignore_ascii_case("localhost")
}
