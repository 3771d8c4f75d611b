//! Requests: how long they last, and copies of them.

use http::Request;
use kube::client::Body;

/// How long a request lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Brief,
    /// Watches, which do not end for minutes, and what else is followed.
    Lasting,
}

impl Length {
    /// Returns how long a request lasts, as the API server sees it: watches, logs that are followed, and what is
    /// passed on to programs.
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let query = request.uri().query().unwrap_or_default();
        let is_set = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            matches!(name, "watch" | "follow") && !matches!(value, "0" | "false")
        };
        if query.split('&').any(is_set) || is_call(request.uri().path()) {
            Self::Lasting
        } else {
            Self::Brief
        }
    }
}

/// Returns whether a path, whatever stands before `/api`, is passed on to a program or is a watch of old.
fn is_call(path: &str) -> bool {
    let mut parts = path.split('/').skip_while(|part| !part.starts_with("api"));
    let versions = if parts.next() == Some("apis") { 2 } else { 1 };
    let rest: Vec<&str> = parts.skip(versions).collect();
    let rest = match &rest[..] {
        ["watch", ..] => return true,
        ["namespaces", _, rest @ ..] => rest,
        rest => rest,
    };
    let subresource = rest.get(2).copied().unwrap_or_default();
    matches!(subresource, "proxy" | "exec" | "attach" | "portforward")
}

/// Copies a request, unless its body is a stream.
pub(super) fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let body = request.body().try_clone()?;
    let mut copy = Request::new(body);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    *copy.version_mut() = request.version();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_last_are_recognized() {
        for (uri, expected) in [
            ("/api/v1/pods?watch=true", Length::Lasting),
            ("/api/v1/pods?limit=500&watch=1", Length::Lasting),
            ("/api/v1/pods?watch=false", Length::Brief),
            ("/api/v1/pods?limit=500", Length::Brief),
            (
                "/api/v1/namespaces/a/pods/b/log?follow=true",
                Length::Lasting,
            ),
            ("/api/v1/namespaces/a/pods/b/log", Length::Brief),
            ("/api/v1/namespaces/a/pods/b/proxy/x", Length::Lasting),
            (
                "/api/v1/namespaces/a/pods/b/exec?command=ls",
                Length::Lasting,
            ),
            ("/api/v1/namespaces/proxy", Length::Brief),
        ] {
            let request = Request::get(uri).body(()).expect("it is one");
            assert_eq!(Length::of(&request), expected, "{uri}");
        }
    }
}
