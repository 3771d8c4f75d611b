//! Where a reflector reads a kind from.

use std::error::Error;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderValue};
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use kube::Client;
use kube::client::Body;
use lariat_core::ResourceKind;

/// An error of a source, which may be any.
pub type SourceError = Box<dyn Error + Send + Sync>;

/// The body of a source's answer.
pub type SourceBody = UnsyncBoxBody<Bytes, SourceError>;

/// The collection a reflector lists and watches.
///
/// The default is the kind's endpoint on the API server. A source of your own can wrap, restrict or
/// replace it, as long as it answers as the API server does.
pub trait Source: Send + Sync + 'static {
    /// Sends a GET for the collection with a query: a list, or with `watch=true` a watch.
    ///
    /// An answer with an error status is an answer; an error is for when there is none.
    fn get(&self, query: &str) -> BoxFuture<'_, Result<Response<SourceBody>, SourceError>>;
}

/// A kind's endpoint on the API server, over all namespaces.
pub(crate) struct Endpoint {
    client: Client,
    path: String,
}

impl Endpoint {
    pub(crate) fn new(client: Client, resource: &ResourceKind) -> Self {
        Self {
            client,
            path: resource.collection_path(None),
        }
    }
}

impl Source for Endpoint {
    fn get(&self, query: &str) -> BoxFuture<'_, Result<Response<SourceBody>, SourceError>> {
        let mut request = Request::get(format!("{}?{query}", self.path));
        if let Some(headers) = request.headers_mut() {
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
            // A compressed watch is one gzip member per event, which decoders stop after the first of.
            if query.contains("watch=true") {
                headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            }
        }
        let request = request.body(Body::empty());
        Box::pin(async move {
            let response = self.client.send(request?).await?;
            Ok(response.map(|body| body.map_err(SourceError::from).boxed_unsync()))
        })
    }
}
