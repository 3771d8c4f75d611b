//! Gates: interceptors that decide about a write before it is sent.

use std::cell::OnceCell;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use kube::client::Body;
use lariat_core::{Fence, Gvk, LabelSelector, ObjectKey};
use serde_json::{Map, Value, json};
use tower::BoxError;

use super::write::{KindCache, Write, WriteObserver, WriteVerb};
use crate::store::{CachedObject, Query, Store};

/// An interceptor of all writes through the clients of a factory.
///
/// See [`SharedClientFactory::set_gate`](super::SharedClientFactory::set_gate). Access reviews and similar requests,
/// which are a POST but store nothing, are not writes. Calls into pods (`exec`, `attach`, `portforward`) are writes,
/// also as the GET that starts a WebSocket. Requests to a `proxy` are writes, unless they are a GET.
///
/// ```
/// use lariat::cache::{GateDecision, PendingWrite, WriteGate, WriteVerb};
///
/// /// Refuses all deletions.
/// struct KeepAll;
///
/// impl WriteGate for KeepAll {
///     fn admit(&self, write: &PendingWrite<'_>) -> GateDecision {
///         match write.verb() {
///             WriteVerb::Delete | WriteVerb::DeleteCollection => {
///                 GateDecision::Refuse(format!("{write} is not allowed").into())
///             }
///             _ => GateDecision::Pass,
///         }
///     }
/// }
/// ```
pub trait WriteGate: Send + Sync + 'static {
    /// Decides about a write.
    ///
    /// It is called on the task of the caller, which waits for it, so it must be quick.
    fn admit(&self, write: &PendingWrite<'_>) -> GateDecision;

    /// Returns the fence of the write that was just admitted (default: none).
    ///
    /// It is called on the same task as [`admit`](Self::admit), unless the write is a dry run. The client asks the
    /// fence right before each attempt and after every wait, and aborts the request when the fence closes.
    fn fence(&self) -> Option<Box<dyn Fence>> {
        None
    }

    /// Runs a function that applies the answer of a write to the caches (default: just that).
    ///
    /// A gate can set there on whose behalf the write was sent.
    fn attribute(&self, publish: &mut dyn FnMut()) {
        publish();
    }
}

/// The writes that follow a write, as an extension of its request.
///
/// A write that must not remain alone, such as the deletion of an object that is created again, announces the others.
/// So a gate can [decide about all of them](PendingWrite::followed_by) before the first one is sent. Each of them is
/// still asked about when it is sent.
///
/// ```
/// use lariat::cache::{FollowedBy, WriteVerb};
///
/// let mut request = http::Request::delete("/api/v1/namespaces/shop/configmaps/web").body(Vec::<u8>::new())?;
/// request.extensions_mut().insert(FollowedBy(&[WriteVerb::Create]));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowedBy(pub &'static [WriteVerb]);

/// The decision of a gate about a write.
#[non_exhaustive]
pub enum GateDecision {
    /// The write is sent, and its result is not reported to the gate.
    Pass,
    /// The write is sent, and the receipt receives its result.
    Send(Box<dyn WriteReceipt>),
    /// The write is sent as a dry run (`dryRun=All`).
    ///
    /// The API server validates and answers it, and stores nothing. The caller gets that answer; caches do not.
    DryRun(Box<dyn WriteReceipt>),
    /// The write is not sent; the caller gets the error as [`kube::Error::Service`].
    Refuse(Box<dyn Error + Send + Sync>),
}

/// Receives the result of a write, once.
///
/// It is dropped without a call if the result is unknown: the caller was cancelled, or no answer came.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use std::sync::Arc;
/// use lariat::cache::{GateDecision, PendingWrite, WriteResult, WriteGate, WriteReceipt};
///
/// /// Counts the writes that the API server answered.
/// #[derive(Clone, Default)]
/// struct Answered(Arc<AtomicUsize>);
///
/// impl WriteReceipt for Answered {
///     fn ended(self: Box<Self>, end: &WriteResult<'_>) {
///         if let WriteResult::Answered { .. } = end {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// impl WriteGate for Answered {
///     fn admit(&self, _: &PendingWrite<'_>) -> GateDecision {
///         GateDecision::Send(Box::new(self.clone()))
///     }
/// }
/// ```
pub trait WriteReceipt: Send {
    /// Receives the result.
    ///
    /// It is called on the task of the caller, which waits for it, so it must be quick.
    fn ended(self: Box<Self>, end: &WriteResult<'_>);
}

/// The result of a write.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum WriteResult<'a> {
    /// The write was not sent.
    NotSent,
    /// The API server answered.
    Answered {
        /// The HTTP status, of a success or an error.
        status: StatusCode,
        /// The answer, if it is JSON.
        body: Option<&'a [u8]>,
        /// The object before a dry run of an update or patch, as JSON.
        ///
        /// It is read from the API server just before the dry run. `None` for other writes, if there was no such
        /// object, or if it may not be read.
        before: Option<&'a [u8]>,
        /// Whether the write was sent as a dry run, so that nothing is stored.
        is_dry_run: bool,
    },
}

/// A write that is about to be sent.
///
/// Its text is `delete v1 Pod shop/web-0` or, if the kind is not cached, `delete v1 pods shop/web-0`.
pub struct PendingWrite<'a> {
    write: &'a Write,
    /// The query of the request.
    query: &'a str,
    followed_by: &'static [WriteVerb],
    observer: &'a dyn WriteObserver,
    /// The cache of the kind, once it was looked up.
    cache: OnceCell<Option<KindCache>>,
}

/// The error of a write that cannot be sent as a dry run.
#[derive(Debug, thiserror::Error)]
#[error("{write} cannot be sent as a dry run: {reason}")]
struct NoDryRun {
    write: String,
    reason: &'static str,
}

/// Groups whose objects are requests for information: nothing is stored.
const QUESTIONS: [&str; 2] = [
    "/apis/authorization.k8s.io/",
    "/apis/authentication.k8s.io/",
];

impl PendingWrite<'_> {
    /// Returns the verb of the write.
    #[must_use]
    pub fn verb(&self) -> WriteVerb {
        self.write.verb()
    }

    /// Returns the path of group and version: `/api/v1`, or `/apis/group/version`.
    #[must_use]
    pub fn api_path(&self) -> &str {
        &self.write.api_path
    }

    /// Returns the plural resource name.
    #[must_use]
    pub fn plural(&self) -> &str {
        &self.write.plural
    }

    /// Returns the namespace of the object or collection.
    ///
    /// `None` for a cluster-scoped object, and for a collection over all namespaces.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.write.namespace.as_deref()
    }

    /// Returns the key of the object.
    ///
    /// `None` for a collection, and for a creation, whose name is in its body.
    #[must_use]
    pub fn key(&self) -> Option<ObjectKey> {
        (!self.write.name.is_empty()).then(|| self.write.key())
    }

    /// Returns the subresource, if the write is to one.
    #[must_use]
    pub fn subresource(&self) -> Option<&str> {
        self.write.subresource.as_deref()
    }

    /// Returns whether the caller requested a dry run, which stores nothing.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.write.is_dry_run
    }

    /// Returns the verbs of the writes to the same object that follow.
    ///
    /// Empty unless the request [announces](FollowedBy) any.
    #[must_use]
    pub fn followed_by(&self) -> &'static [WriteVerb] {
        self.followed_by
    }

    /// Returns the kind, if it is cached.
    #[must_use]
    pub fn gvk(&self) -> Option<&Gvk> {
        self.cache().map(|cache| &cache.gvk)
    }

    /// Returns the store of the kind, if it is cached; it may not have synced yet.
    #[must_use]
    pub fn store(&self) -> Option<&Arc<Store>> {
        self.cache().map(|cache| &cache.store)
    }

    /// Returns the cached state of the object, if there is one.
    #[must_use]
    pub fn cached(&self) -> Option<Arc<CachedObject>> {
        self.store()?.get(&self.key()?)
    }

    /// Returns how many objects the write affects.
    ///
    /// It is one, or for a collection the number of cached objects with its namespace and labels. A field selector is
    /// ignored, so fewer objects may be affected. Returns `None` if the cache cannot know: there is none, it has not
    /// synced or is not up to date, it is restricted to a [selection](crate::Selection) of labels, fields or other
    /// namespaces, or it reads from a [`Source`](crate::Source) of the caller.
    #[must_use]
    pub fn objects(&self) -> Option<usize> {
        if self.verb() != WriteVerb::DeleteCollection {
            return Some(1);
        }
        let cache = self.cache().filter(|cache| cache.is_whole)?;
        let mut query = self
            .namespace()
            .map_or_else(Query::all, Query::in_namespace);
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        let labels = pairs.find(|(name, _)| name == "labelSelector");
        // Labels that cannot be parsed here count as all labels: more objects rather than fewer.
        let labels = labels.and_then(|(_, text)| text.parse::<LabelSelector>().ok());
        if let Some(labels) = labels {
            query = query.labels(labels);
        }
        Some(cache.store.count(&query))
    }

    fn cache(&self) -> Option<&KindCache> {
        let cache = || self.observer.cache_of(self.write);
        self.cache.get_or_init(cache).as_ref()
    }
}

impl fmt::Display for PendingWrite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.verb())?;
        match self.gvk() {
            Some(gvk) => write!(f, "{gvk}")?,
            None => write!(f, "{}", self.write.resource())?,
        }
        match (self.key(), self.namespace()) {
            (Some(key), _) => write!(f, " {key}")?,
            (None, Some(namespace)) => write!(f, " in {namespace}")?,
            (None, None) => {}
        }
        match self.subresource() {
            Some(subresource) => write!(f, " ({subresource})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for PendingWrite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingWrite").field(self.write).finish()
    }
}

impl fmt::Debug for GateDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("Pass"),
            Self::Send(_) => f.write_str("Send"),
            Self::DryRun(_) => f.write_str("DryRun"),
            Self::Refuse(error) => f.debug_tuple("Refuse").field(error).finish(),
        }
    }
}

impl fmt::Debug for WriteResult<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent => f.write_str("NotSent"),
            // Without the body, which may be a Secret.
            Self::Answered { status, .. } => f.debug_tuple("Answered").field(status).finish(),
        }
    }
}

/// Describes a write, as [`PendingWrite`] does.
pub(super) struct Described<'a> {
    pub(super) write: &'a Write,
    pub(super) observer: &'a dyn WriteObserver,
}

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pending = PendingWrite {
            write: self.write,
            query: "",
            followed_by: &[],
            observer: self.observer,
            cache: OnceCell::new(),
        };
        pending.fmt(f)
    }
}

/// Calls the gate and changes the request accordingly.
///
/// `options` is the body of a deletion.
pub(super) fn pass(
    gate: &dyn WriteGate,
    observer: &dyn WriteObserver,
    write: &mut Write,
    request: &mut Request<Body>,
    options: Option<&Bytes>,
) -> Result<Option<Box<dyn WriteReceipt>>, BoxError> {
    if is_question(write) {
        return Ok(None);
    }
    let pending = PendingWrite {
        write,
        query: request.uri().query().unwrap_or_default(),
        followed_by: request
            .extensions()
            .get::<FollowedBy>()
            .map_or(&[], |following| following.0),
        observer,
        cache: OnceCell::new(),
    };
    let receipt = match gate.admit(&pending) {
        GateDecision::Pass => return Ok(None),
        GateDecision::Send(receipt) => return Ok(Some(receipt)),
        GateDecision::Refuse(error) => return Err(error),
        GateDecision::DryRun(receipt) => receipt,
    };
    let text = pending.to_string();
    match make_dry_run(write, request, options) {
        Ok(()) => Ok(Some(receipt)),
        Err(reason) => {
            receipt.ended(&WriteResult::NotSent);
            Err(NoDryRun {
                write: text,
                reason,
            }
            .into())
        }
    }
}

/// Returns whether a POST only requests information, and stores nothing.
pub(super) fn is_question(write: &Write) -> bool {
    let path = &write.api_path;
    QUESTIONS.iter().any(|group| path.starts_with(group))
}

/// Changes a request to a dry run.
fn make_dry_run(
    write: &mut Write,
    request: &mut Request<Body>,
    options: Option<&Bytes>,
) -> Result<(), &'static str> {
    if write.is_passed_on() {
        return Err("the request is passed on to a program");
    }
    // The caller's own dry run stores nothing as it is.
    if write.is_dry_run {
        return Ok(());
    }
    write.is_dry_run = true;
    // If a deletion has a body, the API server ignores its query.
    match options.filter(|options| !options.is_empty()) {
        Some(options) => {
            let not_json = "the options of the deletion are not JSON";
            let mut options: Map<String, Value> =
                serde_json::from_slice(options).map_err(|_| not_json)?;
            options.insert("dryRun".to_owned(), json!(["All"]));
            let options = serde_json::to_vec(&options).map_err(|_| not_json)?;
            *request.body_mut() = Body::from(options);
            request.headers_mut().remove(header::CONTENT_LENGTH);
        }
        None => *request.uri_mut() = with_dry_run(request.uri()).ok_or("the URI is too long")?,
    }
    Ok(())
}

/// Adds the dry-run parameter to a URI.
fn with_dry_run(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let target = match uri.query().filter(|query| !query.is_empty()) {
        Some(query) => format!("{path}?{query}&dryRun=All"),
        None => format!("{path}?dryRun=All"),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dry_run_parameter_is_added_to_the_query() {
        for (uri, expected) in [
            ("/api/v1/pods", "/api/v1/pods?dryRun=All"),
            ("/api/v1/pods?", "/api/v1/pods?dryRun=All"),
            (
                "/api/v1/pods?force=true",
                "/api/v1/pods?force=true&dryRun=All",
            ),
            (
                "http://x:1/api/v1/pods",
                "http://x:1/api/v1/pods?dryRun=All",
            ),
        ] {
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(with_dry_run(&uri).unwrap().to_string(), expected);
        }
    }
}
