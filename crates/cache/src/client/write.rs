//! Writes: what a request writes, read from its path, and the observer of writes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{Method, Request};
use lariat_core::{Gvk, ObjectKey, is_dry_run, name_of_segment};

use crate::store::{CachedObject, Store};

/// Observes successful writes; implemented by the factory of caches.
pub(crate) trait WriteObserver: Send + Sync + 'static {
    /// Returns the cache of the written kind, if it is cached.
    fn cache_of(&self, write: &Write) -> Option<KindCache>;

    fn wrote(&self, write: &Write, answer: &[u8], sent: Sent);
}

/// What was known when a write was sent.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// The cached state of the object.
    pub(crate) before: Option<Arc<CachedObject>>,
    /// The number of the write, in the order in which writes were sent.
    pub(crate) number: u64,
}

/// How many writes were sent.
static WRITES: AtomicU64 = AtomicU64::new(0);

impl Sent {
    pub(super) fn now(write: &Write, observer: &dyn WriteObserver) -> Self {
        let cache = observer.cache_of(write);
        Self::next(cache.and_then(|cache| cache.store.get(&write.key())))
    }

    /// Returns the cached state and the next number, for the next request.
    pub(crate) fn next(before: Option<Arc<CachedObject>>) -> Self {
        Self {
            before,
            // Taken before the request is sent: of two writes of a name, the later one has the greater number.
            number: WRITES.fetch_add(1, Ordering::Relaxed),
        }
    }
}

/// The cache of a written kind.
pub(crate) struct KindCache {
    pub(crate) gvk: Gvk,
    pub(crate) store: Arc<Store>,
    /// Whether it has synced and contains all objects that the write may affect.
    ///
    /// These are the objects of the write's namespace, or of all namespaces.
    pub(crate) is_whole: bool,
}

/// A write, read from its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) method: Method,
    /// `/api/v1`, or `/apis/group/version`.
    pub(crate) api_path: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    /// Empty for a creation, and for a collection.
    pub(crate) name: String,
    pub(crate) subresource: Option<String>,
    /// Whether it is a dry run, which stores nothing.
    pub(crate) is_dry_run: bool,
}

/// Subresources that answer with the object itself.
///
/// Other answers cannot be trusted: a proxied service could claim to be any object.
pub(crate) const OF_THE_OBJECT: [&str; 5] = [
    "status",
    "finalize",
    "ephemeralcontainers",
    "resize",
    "approval",
];

/// Subresources that run something in a pod.
///
/// They are called by GET too, the method that starts a WebSocket.
const CALLS: [&str; 3] = ["exec", "attach", "portforward"];

/// Groups whose objects are requests for information: nothing is stored.
const QUESTIONS: [&str; 2] = [
    "/apis/authorization.k8s.io/",
    "/apis/authentication.k8s.io/",
];

/// The verb of a write, as the API server names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WriteVerb {
    /// `create`; also for subresources, such as an eviction, and calls into pods.
    Create,
    /// `update`: replaces an object.
    Update,
    /// `patch`; also server-side apply, which may create the object.
    Patch,
    /// `delete`: deletes an object.
    Delete,
    /// `deletecollection`: deletes all matching objects.
    DeleteCollection,
}

impl WriteVerb {
    /// Returns the verb as text, such as `deletecollection`.
    ///
    /// ```
    /// use lariat::cache::WriteVerb;
    ///
    /// assert_eq!(WriteVerb::DeleteCollection.as_str(), "deletecollection");
    /// assert_eq!(format!("{}", WriteVerb::Patch), "patch");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

impl fmt::Display for WriteVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Write {
    /// Reads from a request what it writes; `None` for reads.
    pub(super) fn of<B>(request: &Request<B>) -> Option<Self> {
        let method = request.method();
        let is_write = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(method);
        let query = request.uri().query().unwrap_or_default();
        let mut parts = request.uri().path().trim_matches('/').split('/').peekable();
        let api_path = match parts.next()? {
            "api" => format!("/api/{}", parts.next()?),
            "apis" => format!("/apis/{}/{}", parts.next()?, parts.next()?),
            _ => return None,
        };
        let mut namespace = None;
        let mut plural = parts.next()?;
        // `namespaces/NAME` and its subresources are the namespace itself.
        let segments: Vec<&str> = parts.collect();
        let mut rest = &segments[..];
        if plural == "namespaces" && rest.len() >= 2 && !is_namespace_part(rest[1]) {
            namespace = Some(name_of_segment(rest[0]).into_owned());
            plural = rest[1];
            rest = &rest[2..];
        }
        let name = rest.first().copied().unwrap_or_default();
        // Every other write needs a name, and the API server refuses it.
        if name.is_empty() && ![Method::POST, Method::DELETE].contains(method) {
            return None;
        }
        // A GET with an upgrade runs a command as a POST does.
        let is_call = rest.get(1).is_some_and(|part| CALLS.contains(part));
        if !is_write && !is_call {
            return None;
        }
        Some(Self {
            // A request that is passed on to a program is never a dry run, whatever its query contains.
            is_dry_run: !rest.get(1).is_some_and(|part| is_passed_on(part))
                && query.split('&').any(|pair| pair.starts_with("dryRun=")),
            method: method.clone(),
            api_path,
            namespace,
            plural: plural.to_owned(),
            name: name_of_segment(name).into_owned(),
            subresource: rest.get(1).map(|part| (*part).to_owned()),
        })
    }

    pub(super) fn verb(&self) -> WriteVerb {
        match self.method {
            Method::PUT => WriteVerb::Update,
            Method::PATCH => WriteVerb::Patch,
            Method::DELETE if self.name.is_empty() => WriteVerb::DeleteCollection,
            Method::DELETE => WriteVerb::Delete,
            _ => WriteVerb::Create,
        }
    }

    /// Returns the key of the object; its name is empty for a creation or collection.
    pub(crate) fn key(&self) -> ObjectKey {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        ObjectKey::namespaced(namespace, &self.name)
    }

    /// Returns group, version and plural as text: `apps/v1 deployments`.
    pub(super) fn resource(&self) -> String {
        let path = self.api_path.trim_start_matches("/apis/");
        format!("{} {}", path.trim_start_matches("/api/"), self.plural)
    }

    pub(super) fn is_deletion(&self) -> bool {
        self.method == Method::DELETE
    }

    /// Reads the body of a deletion; if there is one, the API server ignores the query.
    pub(super) fn read_options(&mut self, options: &[u8]) {
        if !options.is_empty() && !self.is_passed_on() {
            self.is_dry_run = is_dry_run(options);
        }
    }

    /// Returns whether it is passed on to a program, which has no dry run.
    pub(super) fn is_passed_on(&self) -> bool {
        self.subresource.as_deref().is_some_and(is_passed_on)
    }

    /// Returns whether a POST only requests information, and stores nothing.
    pub(super) fn is_question(&self) -> bool {
        let path = &self.api_path;
        QUESTIONS.iter().any(|group| path.starts_with(group))
    }

    /// Returns whether the answer contains a new state of an object.
    pub(super) fn shows(&self) -> bool {
        !self.is_dry_run && !self.is_passed_on() && self.verb() != WriteVerb::DeleteCollection
    }
}

/// Returns whether a subresource passes requests on to programs.
fn is_passed_on(part: &str) -> bool {
    part == "proxy" || CALLS.contains(&part)
}

/// Returns whether this is a subresource of a namespace, not a resource in it.
fn is_namespace_part(part: &str) -> bool {
    matches!(part, "status" | "finalize")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: Method, uri: &str) -> Option<String> {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let write = Write::of(&request).filter(Write::shows)?;
        let namespace = write.namespace.unwrap_or("-".to_owned());
        let subresource = write.subresource.unwrap_or("-".to_owned());
        let (path, plural, name) = (write.api_path, write.plural, write.name);
        Some(format!("{path} {namespace} {plural} {name} {subresource}"))
    }

    #[test]
    fn writes_are_read_from_their_paths() {
        for (method, uri, expected) in [
            (
                Method::POST,
                "/api/v1/namespaces/a/pods",
                "/api/v1 a pods  -",
            ),
            (
                Method::POST,
                "/api/v1/namespaces",
                "/api/v1 - namespaces  -",
            ),
            (
                Method::PATCH,
                "/api/v1/namespaces/a",
                "/api/v1 - namespaces a -",
            ),
            (
                Method::PUT,
                "/api/v1/namespaces/a/status",
                "/api/v1 - namespaces a status",
            ),
            (
                Method::PATCH,
                "/apis/apps/v1/namespaces/a/deployments/b/scale?x=y",
                "/apis/apps/v1 a deployments b scale",
            ),
            (
                Method::DELETE,
                "/apis/g/v1/things/b",
                "/apis/g/v1 - things b -",
            ),
            (
                Method::DELETE,
                "/apis/g/v1/namespaces/a%3F/things/b%3Fx%20y",
                "/apis/g/v1 a? things b?x y -",
            ),
        ] {
            assert_eq!(read(method, uri).as_deref(), Some(expected), "{uri}");
        }
    }

    #[test]
    fn the_body_of_a_deletion_decides_whether_it_is_a_dry_run() {
        for (query, body, expected) in [
            ("", "", false),
            ("?dryRun=All", "", true),
            ("?dryRun=All", "{}", false),
            ("?dryRun=All", "not JSON", false),
            ("", r#"{"dryRun": ["All"]}"#, true),
            ("?dryRun=All", r#"{"dryRun": ["All"]}"#, true),
        ] {
            let request = Request::delete(format!("/api/v1/nodes/a{query}"));
            let mut write = Write::of(&request.body(()).unwrap()).unwrap();
            write.read_options(body.as_bytes());
            assert_eq!(write.is_dry_run, expected, "{query} {body}");
        }
    }

    #[test]
    fn calls_into_pods_are_writes_by_any_method_and_never_dry_runs() {
        let read = |method: Method, uri: &str| {
            let request = Request::builder().method(method).uri(uri).body(()).unwrap();
            let write = Write::of(&request)?;
            Some((write.verb(), write.is_dry_run, write.shows()))
        };
        let call = Some((WriteVerb::Create, false, false));
        for (method, path, expected) in [
            (Method::GET, "pods/a/exec?command=ls&dryRun=All", call),
            (Method::GET, "pods/a/attach", call),
            (Method::GET, "pods/a/portforward?ports=80", call),
            (Method::POST, "pods/a/exec?command=ls", call),
            (Method::POST, "services/a/proxy/x?dryRun=All", call),
            (Method::GET, "services/a/proxy/x", None),
            (Method::GET, "pods/a/log", None),
            (Method::GET, "pods/exec", None),
        ] {
            let uri = format!("/api/v1/namespaces/exec/{path}");
            assert_eq!(read(method.clone(), &uri), expected, "{method} {path}");
        }
    }

    #[test]
    fn reads_dry_runs_and_collections_show_nothing() {
        for (method, uri) in [
            (Method::GET, "/api/v1/namespaces/a/pods"),
            (Method::POST, "/api/v1/namespaces/a/pods?dryRun=All"),
            (Method::DELETE, "/api/v1/namespaces/a/pods"),
            (Method::POST, "/healthz"),
        ] {
            assert_eq!(read(method, uri), None, "{uri}");
        }
    }
}
