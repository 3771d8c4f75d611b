//! The tower service: one request in, one response out.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderName, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;

use super::body::{self, ResponseBody};
use super::discovery;
use super::negotiate::{Shape, accepts_gzip};
use super::query::Query;
use super::reply::Reply;
use super::route::{Route, Target};
use super::status::ApiError;
use crate::journal;
use crate::server::Server;
use crate::verbs::{Call, Verb};

/// The cluster as a [`tower`](https://docs.rs/tower) service, for clients in the same process.
///
/// It is always ready and never fails: errors are HTTP responses.
#[derive(Debug, Clone)]
pub struct ClusterService {
    pub(crate) server: Arc<Server>,
}

impl<B> tower_service::Service<Request<B>> for ClusterService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = Arc::clone(&self.server);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let path = parts.uri.path().to_owned();
            let compresses = accepts_gzip(header(&parts.headers, &ACCEPT_ENCODING));
            let answer = AssertUnwindSafe(answer(server, parts, body)).catch_unwind();
            // One request that finds a defect must not take its client's connection along.
            let reply = answer.await.unwrap_or_else(|_| {
                tracing::error!(path, "a request panicked");
                Err(ApiError::internal(
                    "the server has a defect; its log says more",
                ))
            });
            let reply = reply.unwrap_or_else(Reply::from);
            let reply = if compresses { reply.gzip() } else { reply };
            Ok(reply.into_response())
        })
    }
}

async fn answer<B>(server: Arc<Server>, parts: Parts, body: B) -> Result<Reply, ApiError>
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let route = Route::parse(parts.uri.path());
    server.journal.record(entry(&parts, &route, &query));
    if server.stopped.is_cancelled() {
        return Err(ApiError::shut_down());
    }
    let shape = Shape::negotiate(header(&parts.headers, &ACCEPT))?;
    let catalog = server.kinds.catalog();
    if !matches!(route, Route::Objects(_)) && shape != Shape::Whole {
        return Err(ApiError::not_acceptable());
    }
    let target = match route {
        Route::Version => return Ok(discovery::version()),
        Route::Health => return Ok(Reply::text(StatusCode::OK, "ok")),
        Route::CoreVersions => return Ok(discovery::core_versions()),
        Route::Groups => return Ok(discovery::groups(&catalog)),
        Route::Group(group) => return discovery::group(&catalog, &group),
        Route::Resources { group, version } => {
            return discovery::resources(&catalog, &group, &version);
        }
        Route::Objects(target) => target,
        Route::Unknown => return Err(ApiError::page_not_found()),
    };
    let resource = catalog
        .resource(&target.group, &target.version, &target.plural)
        .filter(|resource| resource.namespaced || target.namespace.is_none())
        .ok_or_else(|| discovery::unserved(&catalog, &target.group))?;
    let resource = Arc::clone(resource);
    let verb = verb(&parts.method, &target, &query).ok_or_else(ApiError::method_not_allowed)?;
    if resource.namespaced && target.namespace.is_none() && !spans_namespaces(verb) {
        return Err(ApiError::method_not_allowed());
    }
    let call = Call {
        body: body::read(body).await?,
        content_type: header(&parts.headers, &CONTENT_TYPE).to_owned(),
        server,
        resource,
        target,
        query,
        shape,
    };
    call.run(verb).await
}

/// Returns whether a verb makes sense for all namespaces at once.
fn spans_namespaces(verb: Verb) -> bool {
    matches!(verb, Verb::List | Verb::Watch)
}

fn verb(method: &Method, target: &Target, query: &Query) -> Option<Verb> {
    Verb::of(method, target, query.watches())
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn entry(parts: &Parts, route: &Route, query: &Query) -> journal::Request {
    let mut request = journal::Request {
        verb: parts.method.as_str().to_lowercase(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        user_agent: header(&parts.headers, &USER_AGENT).to_owned(),
        ..journal::Request::default()
    };
    if let Route::Objects(target) = route {
        if let Some(verb) = verb(&parts.method, target, query) {
            request.verb = verb.as_str().to_owned();
        }
        request.group = target.group.clone();
        request.resource = target.plural.clone();
        request.subresource = target.subresource.clone();
        request.namespace = target.namespace.clone();
        request.name = target.name.clone();
    }
    request
}
