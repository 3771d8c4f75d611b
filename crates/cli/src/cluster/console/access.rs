//! Who may use the console.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use lariat_http::{Hosts, PAGE_POLICY, bearer, is_same};

use super::reply::Refusal;

/// What a request has to show.
#[derive(Clone)]
pub(super) struct Access {
    /// The token of the API, if it needs one.
    pub(super) token: Option<String>,
    /// The console listens on a loopback address.
    pub(super) is_local: bool,
}

/// Lets a request through or refuses it, and adds headers to the answer.
pub(super) async fn guard(State(access): State<Access>, request: Request, next: Next) -> Response {
    // Refusals get the headers as well: a page of another site must not learn anything from them either.
    let mut response = match access.check(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    secure(response.headers_mut());
    response
}

impl Access {
    fn check(&self, request: &Request) -> Result<(), Refusal> {
        let headers = request.headers();
        // Against DNS rebinding: a page of another site can give its own host name the address 127.0.0.1. On other
        // addresses
        // the names of the console are not known, and there is a token.
        if self.is_local && !Hosts::default().allow(headers) {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "the Host header is refused: use the address of the console, or localhost",
            ));
        }
        if !is_of_this_site(headers, request.method()) {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "requests of pages of other sites are refused",
            ));
        }
        match &self.token {
            // The page itself needs no token: it says nothing about the cluster, and is where the user enters the
            // token.
            Some(token) if request.uri().path().starts_with("/api/") => check_token(headers, token),
            _ => Ok(()),
        }
    }
}

fn check_token(headers: &HeaderMap, token: &str) -> Result<(), Refusal> {
    let shown = bearer(headers)
        .map_err(|error| Refusal::new(StatusCode::UNAUTHORIZED, error.to_string()))?;
    // A comparison whose time does not depend on how much of the token is right.
    if is_same(shown, token) {
        Ok(())
    } else {
        Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            "the token is not the right one",
        ))
    }
}

/// Returns whether a request comes from the console's own page, or from no page.
fn is_of_this_site(headers: &HeaderMap, method: &Method) -> bool {
    let text = |name: HeaderName| {
        headers
            .get(name)
            // A value that is no text becomes empty, which is neither absent nor equal to anything allowed.
            .map(|value| value.to_str().unwrap_or_default())
    };
    let is_own = |origin: &str| {
        let host = text(header::HOST).unwrap_or_default();
        let named = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        !host.is_empty() && named == Some(host)
    };
    // A link on another site may open the page, and do nothing else.
    let site = text(HeaderName::from_static("sec-fetch-site"));
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let is_near = matches!(site, None | Some("same-origin" | "none"));
    text(header::ORIGIN).is_none_or(is_own) && (is_read || is_near)
}

fn secure(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // The policy says this as well, by `frame-ancestors`, which old browsers do not know.
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        // The answers show a cluster that may need a token, so no cache may keep them.
        (header::CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&'static str, &str)], method: &Method, expected: bool) {
        let all = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        assert_eq!(
            is_of_this_site(&all, method),
            expected,
            "{method} {headers:?}"
        );
    }

    #[test]
    fn other_sites_do_nothing_here() {
        let host = ("host", "127.0.0.1:9091");
        let own = ("origin", "http://127.0.0.1:9091");
        for (headers, read, write) in [
            (&[host][..], true, true),
            (&[host, own], true, true),
            (&[host, own, ("sec-fetch-site", "same-origin")], true, true),
            (&[host, ("origin", "http://127.0.0.1:8001")], false, false),
            (&[host, ("origin", "http://evil.example")], false, false),
            (&[host, ("origin", "null")], false, false),
            (&[own], false, false),
            (&[host, ("sec-fetch-site", "cross-site")], true, false),
            (&[host, ("sec-fetch-site", "same-site")], true, false),
        ] {
            check(headers, &Method::GET, read);
            check(headers, &Method::POST, write);
            check(headers, &Method::DELETE, write);
        }
    }
}
