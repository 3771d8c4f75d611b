//! The source from which a reflector reads a kind: requests and their answers.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderValue};
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use lariat_client::CountedClient;
use lariat_core::ResourceKind;

/// How long an answer may take to begin or, in a list, to continue.
///
/// The API server itself limits a request that is not a watch to one minute.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(65);

/// The error of a source, of any type.
pub type SourceError = Box<dyn Error + Send + Sync>;

/// The body of a source's answer.
pub type SourceBody = UnsyncBoxBody<Bytes, SourceError>;

/// A request to a source: a GET of the collection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceRequest {
    /// Whether this is a watch rather than a list; the query contains it too.
    pub watch: bool,
    /// The namespace; `None` for all.
    pub namespace: Option<Arc<str>>,
    /// The encoded query, without the question mark.
    pub query: String,
    /// Whether metadata is enough. The answer may contain whole objects nevertheless.
    pub metadata_only: bool,
    /// Whether the answer may be compressed with gzip (`Content-Encoding`).
    pub gzip: bool,
}

impl SourceRequest {
    /// Creates the request of a list with a query, for tests of a source.
    ///
    /// ```
    /// use lariat::cache::SourceRequest;
    ///
    /// let request = SourceRequest::list("limit=500");
    /// assert!(!request.watch && request.namespace.is_none());
    /// ```
    #[must_use]
    pub fn list(query: &str) -> Self {
        Self {
            watch: false,
            namespace: None,
            query: query.to_owned(),
            metadata_only: false,
            gzip: false,
        }
    }

    /// Creates the request of a watch with a query, which must contain `watch=true`.
    ///
    /// ```
    /// use lariat::cache::SourceRequest;
    ///
    /// let request = SourceRequest::watch("watch=true&resourceVersion=42");
    /// assert!(request.watch);
    /// ```
    #[must_use]
    pub fn watch(query: &str) -> Self {
        Self {
            watch: true,
            ..Self::list(query)
        }
    }
}

/// The collection that a reflector lists and watches.
///
/// The default is the kind's endpoint on the API server. Your own source can wrap, restrict or replace it, if it
/// answers as the API server does.
///
/// To detect a server that was restored from a backup, the reflector watches after a failure from right before the last
/// event, and expects it again; or it lists one object (`limit=1`) to see the present version. If the source answers
/// neither, everything is listed again.
///
/// ```
/// use futures::future::BoxFuture;
/// use http::Response;
/// use lariat::cache::{Source, SourceBody, SourceError, SourceRequest};
///
/// /// Logs the requests to another source.
/// struct Logged<S>(S);
///
/// impl<S: Source> Source for Logged<S> {
///     fn get<'a>(
///         &'a self,
///         request: &'a SourceRequest,
///     ) -> BoxFuture<'a, Result<Response<SourceBody>, SourceError>> {
///         println!("GET {}", request.query);
///         self.0.get(request)
///     }
/// }
/// ```
pub trait Source: Send + Sync + 'static {
    /// Sends a request.
    ///
    /// An answer with an error status is `Ok`; return an error only if there is no answer.
    fn get<'a>(
        &'a self,
        request: &'a SourceRequest,
    ) -> BoxFuture<'a, Result<Response<SourceBody>, SourceError>>;
}

/// A kind's endpoint on the API server.
pub(crate) struct Endpoint {
    client: CountedClient,
    resource: ResourceKind,
}

impl Endpoint {
    pub(crate) fn new(client: CountedClient, resource: &ResourceKind) -> Self {
        Self {
            client,
            resource: resource.clone(),
        }
    }
}

/// The `Accept` header for metadata only.
///
/// Servers that do not support it send whole objects.
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
    application/json";
const PARTIAL_OBJECT: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
    application/json";

fn accept(request: &SourceRequest) -> HeaderValue {
    HeaderValue::from_static(match (request.metadata_only, request.watch) {
        (false, _) => "application/json",
        (true, false) => PARTIAL_LIST,
        (true, true) => PARTIAL_OBJECT,
    })
}

impl Source for Endpoint {
    fn get<'a>(
        &'a self,
        request: &'a SourceRequest,
    ) -> BoxFuture<'a, Result<Response<SourceBody>, SourceError>> {
        // The query is complete already: `Queries` encodes its parameters.
        let path = self.resource.collection_path(request.namespace.as_deref());
        let mut get = Request::get(format!("{path}?{}", request.query));
        if let Some(headers) = get.headers_mut() {
            headers.insert(ACCEPT, accept(request));
            // A compressed watch would have one gzip member per event, and many decoders stop after the first one.
            let encoding = if request.gzip { "gzip" } else { "identity" };
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(encoding));
        }
        let get = get.body(Body::empty());
        Box::pin(async move {
            let response = self.client.send(get?).await?;
            Ok(response.map(|body| body.map_err(SourceError::from).boxed_unsync()))
        })
    }
}
