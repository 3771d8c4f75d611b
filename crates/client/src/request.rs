//! Requests: how long they last, and copies of them.

use http::{Method, Request};
use kube::client::Body;

/// How long a request lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Brief,
    /// Watches, which last for minutes, and other requests without an end.
    Lasting,
}

impl Length {
    /// Returns how long a request lasts, as the API server classifies it.
    ///
    /// Watches, followed logs, and requests that are passed on to programs last long.
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let query = request.uri().query().unwrap_or_default();
        let is_set = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            matches!(name, "watch" | "follow") && !matches!(value, "0" | "false")
        };
        let path = request.uri().path();
        if query.split('&').any(is_set) || is_old_watch(path) || is_passed_on(path) {
            Self::Lasting
        } else {
            Self::Brief
        }
    }
}

/// Returns whether a request is a watch of a collection, as reflectors send it.
pub(crate) fn is_watch<B>(request: &Request<B>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let is_asked = query
        .split('&')
        .any(|pair| matches!(pair, "watch=true" | "watch=1"));
    is_asked && request.method() == Method::GET && !is_passed_on(request.uri().path())
}

/// Returns whether a path is a watch in the old form, whatever precedes `/api`.
fn is_old_watch(path: &str) -> bool {
    after_version(path).next() == Some("watch")
}

/// Returns whether a request is passed on to a program, whose answer comes back.
///
/// Whatever precedes `/api` in the path is ignored.
pub(crate) fn is_passed_on(path: &str) -> bool {
    let mut parts = after_version(path).peekable();
    // After a namespace; but a namespace itself has no such subresources.
    if parts.peek() == Some(&"namespaces") {
        parts.nth(1);
    }
    let subresource = parts.nth(2).unwrap_or_default();
    !is_old_watch(path) && matches!(subresource, "proxy" | "exec" | "attach" | "portforward")
}

/// Returns the segments of a path after the API version.
fn after_version(path: &str) -> impl Iterator<Item = &str> {
    let mut parts = path.split('/').skip_while(|part| !part.starts_with("api"));
    let versions = if parts.next() == Some("apis") { 2 } else { 1 };
    parts.skip(versions)
}

/// Copies a request, unless its body is a stream.
pub(crate) fn copy(request: &Request<Body>) -> Option<Request<Body>> {
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
            ("/api/v1/nodes/a/proxy/metrics", Length::Lasting),
            ("/api/v1/watch/pods", Length::Lasting),
        ] {
            let request = Request::get(uri).body(()).expect("it is one");
            assert_eq!(Length::of(&request), expected, "{uri}");
        }
    }

    #[test]
    fn requests_that_are_passed_on_are_recognized() {
        for (path, expected) in [
            ("/api/v1/namespaces/a/services/b/proxy/x", true),
            ("/api/v1/namespaces/a/pods/b:8080/proxy", true),
            ("/prefix/api/v1/nodes/a/proxy/metrics", true),
            ("/api/v1/namespaces/a/pods/b/exec", true),
            ("/api/v1/watch/namespaces/a/pods", false),
            ("/api/v1/watch/nodes/proxy", false),
            ("/api/v1/namespaces/a/pods/proxy", false),
            ("/apis/apps/v1/namespaces/a/deployments/b/scale", false),
        ] {
            assert_eq!(is_passed_on(path), expected, "{path}");
        }
    }
}
