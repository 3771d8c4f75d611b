//! The tower service: one request in, one response out.

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
#[cfg(feature = "client")]
use http::HeaderValue;
use http::header::CONNECTION;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use lariat_apimachinery::kinds::Resource;

use super::connection::{Connection, DELIVERY};
use super::incoming::IncomingRequest;
use super::{admin, authenticate, discovery, endpoints, objects};
use crate::faults;
use crate::rules::Fault;
use crate::server::Server;
use crate::status::ApiError;
use crate::verbs::{Call, Warnings};
use crate::wire::body::{self, ResponseBody};
use crate::wire::delivery::Delivery;
use crate::wire::negotiate;
use crate::wire::reply::Reply;
use crate::wire::route::{Route, Target};
use crate::wire::surrogates;
use crate::wire::timeout;
use crate::wire::verb::Verb;

/// The cluster as a [`tower`](https://docs.rs/tower) service.
///
/// It is for clients in the same process. It is always ready. Errors of the API are HTTP responses; a call fails only
/// where a [fault](crate::faults) says that its connection breaks.
#[derive(Debug, Clone)]
pub struct ClusterService {
    pub(crate) server: Arc<Server>,
    /// The connection the requests come by, where there is one.
    pub(crate) connection: Option<Connection>,
}

impl<B> tower_service::Service<Request<B>> for ClusterService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ResponseBody>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { server, connection } = self.clone();
        if let Some(connection) = &connection {
            connection.used();
        }
        Box::pin(async move {
            let reply = respond(server, request, connection.as_ref()).await;
            // A fault breaks the connection, and with it every request that it carries.
            if let (Err(_), Some(connection)) = (&reply, &connection) {
                connection.ended.cancel();
            }
            let response = reply?.into_response();
            Ok(match DELIVERY.try_with(Delivery::clone) {
                Ok(delivery) => response.map(|body| body.delivered_by(delivery)),
                Err(_) => response,
            })
        })
    }
}

/// The cluster as a service whose requests carry a token.
#[cfg(feature = "client")]
#[derive(Debug, Clone)]
pub(crate) struct SignedService {
    service: ClusterService,
    authorization: HeaderValue,
}

#[cfg(feature = "client")]
impl SignedService {
    pub(crate) fn new(service: ClusterService, token: &str) -> Self {
        let authorization = HeaderValue::from_str(&format!("Bearer {token}"));
        // No user has a token that cannot be in a header. Without the header the client would be an administrator.
        let mut authorization = authorization.unwrap_or(HeaderValue::from_static("Bearer"));
        authorization.set_sensitive(true);
        Self {
            service,
            authorization,
        }
    }
}

#[cfg(feature = "client")]
impl<B> tower_service::Service<Request<B>> for SignedService
where
    ClusterService: tower_service::Service<Request<B>>,
{
    type Response = <ClusterService as tower_service::Service<Request<B>>>::Response;
    type Error = <ClusterService as tower_service::Service<Request<B>>>::Error;
    type Future = <ClusterService as tower_service::Service<Request<B>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let headers = request.headers_mut();
        headers.insert(http::header::AUTHORIZATION, self.authorization.clone());
        self.service.call(request)
    }
}

async fn respond<B>(
    server: Arc<Server>,
    request: Request<B>,
    connection: Option<&Connection>,
) -> io::Result<Reply>
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let (incoming, mut applied) = IncomingRequest::new(&server, parts, connection.is_none());
    let compresses = incoming.accepts_gzip();
    let has_stray_space = authenticate::has_stray_space(incoming.authorization());
    // A format that cannot be negotiated is refused in `answer`, by an error in JSON.
    let format = incoming.format().unwrap_or_default();
    let accept = incoming.accept_value();
    let (path, mark) = (incoming.path().to_owned(), incoming.mark);
    let answer = async {
        let fault = applied.fault.clone();
        // Boxed: it is by far the largest part, and each layer around it would move its size.
        let answer = Box::pin(answer(Arc::clone(&server), incoming, fault, body));
        let reply = AssertUnwindSafe(answer).catch_unwind().await;
        // One request that finds a defect must not take its client's connection along.
        let reply = reply.unwrap_or_else(|_| {
            tracing::error!(path, "a request panicked");
            Err(ApiError::internal(
                "the server has a defect; its log says more",
            ))
        });
        // With a data file, what an answer shows has to be on disk first.
        let reply = match server.store.settled().await {
            Ok(()) => reply.unwrap_or_else(Reply::from),
            Err(unsaved) => ApiError::internal(unsaved.to_string()).into(),
        };
        let encoding = if reply.code().is_success() {
            format.encoding
        } else {
            negotiate::encoding_of_errors(accept.to_str().unwrap_or_default())
        };
        reply.encoded(encoding)
    };
    let mut reply = faults::apply(&server, &applied, answer).await?;
    if let Some(mark) = mark {
        server.journal.answered(mark, reply.code());
    }
    if let Some(connection) = connection {
        reply = reply.map(|body| body.keep_with(|| connection.cut_off_guard(mark)));
    }
    let places = std::mem::take(&mut applied.places);
    if !places.is_empty() {
        reply = reply.map(|body| body.keep(places));
    }
    let reply = if has_stray_space {
        reply.warnings(&[authenticate::STRAY_SPACE.to_owned()])
    } else {
        reply
    };
    let reply = reply.uncached();
    Ok(if compresses { reply.gzip() } else { reply })
}

async fn answer<B>(
    server: Arc<Server>,
    incoming: IncomingRequest,
    fault: Option<Fault>,
    body: B,
) -> Result<Reply, ApiError>
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if let Some(refusal) = refuse_form(&incoming) {
        return Ok(refusal);
    }
    check_request(&server, &incoming)?;
    let user = authenticate::admit(&server, &incoming, |user| {
        if let Some(mark) = incoming.mark {
            server.journal.sent_by(mark, user.name());
        }
    })?;
    let (verb, content_type) = (incoming.verb(), incoming.content_type().to_owned());
    let user_agent = incoming.user_agent().to_owned();
    if let Route::Admin(path) = &incoming.route {
        let path = path.clone();
        return administer(&server, incoming, path, body).await;
    }
    let Route::Objects(target) = &incoming.route else {
        return endpoints::answer(&server, &incoming);
    };
    let target = target.clone();
    let format = incoming.format();
    let catalog = server.kinds.catalog();
    let resource = catalog
        .resource(&target.group, &target.version, &target.plural)
        .filter(|resource| resource.namespaced || target.namespace.is_none())
        .ok_or_else(|| discovery::unserved(&catalog, &target.group))?;
    if target.watches && !resource.rules.custom {
        check_watch_path(resource, &incoming, &target)?;
    }
    let Some(verb) = verb.or_else(|| custom_verb(resource, &incoming, &target)) else {
        return Ok(unsupported(resource, &target));
    };
    check_verb(resource, &target, verb)?;
    let format = match format {
        Ok(format) => format,
        Err(error) => return Ok(refused(resource, error)),
    };
    // The body comes last: what is refused before is refused without waiting for it.
    let body = read(&server, &incoming, body).await?;
    let is_json = !content_type.contains("yaml") && !content_type.contains("protobuf");
    let call = Call {
        body: if is_json {
            surrogates::replaced(body)
        } else {
            body
        },
        content_type,
        user_agent,
        user,
        mark: incoming.mark,
        warnings: Warnings::default(),
        has_empty: AtomicBool::new(false),
        resource: Arc::clone(resource),
        target,
        query: incoming.query,
        fault,
        server,
    };
    Ok(objects::answer(call, verb, format).await)
}

async fn administer<B>(
    server: &Arc<Server>,
    incoming: IncomingRequest,
    path: Vec<String>,
    body: B,
) -> Result<Reply, ApiError>
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if !server.admin {
        return Err(ApiError::page_not_found());
    }
    let body = read(server, &incoming, body).await?;
    let request = admin::AdminRequest {
        method: incoming.method().clone(),
        path,
        content_type: incoming.content_type().to_owned(),
        query: incoming.query,
        body,
    };
    admin::answer(server, &request).await
}

/// Answers a request without a valid `Host`, or whose path is incomplete.
fn refuse_form(incoming: &IncomingRequest) -> Option<Reply> {
    if let Some(text) = incoming.host_refusal() {
        return Some(Reply::text(StatusCode::BAD_REQUEST, text).header(CONNECTION, "close"));
    }
    matches!(incoming.route, Route::Incomplete).then(|| incomplete(incoming))
}

/// Answers a path that ends before it says what is asked for.
///
/// Source: `WithRequestInfo` in `k8s.io/apiserver/pkg/endpoints/filters`.
fn incomplete(incoming: &IncomingRequest) -> Reply {
    // `InternalError` answers with an escaped text. A URI has no other character that it escapes.
    let uri = incoming.uri().to_string().replace('&', "&amp;");
    let error = format!("unable to determine kind and namespace from url, {uri}");
    let text = format!("Internal Server Error: {uri:?}: failed to create RequestInfo: {error}\n");
    Reply::text(StatusCode::INTERNAL_SERVER_ERROR, text)
}

/// Refuses a request to a stopped server, and a timeout that cannot be read.
fn check_request(server: &Server, incoming: &IncomingRequest) -> Result<(), ApiError> {
    if server.stopped.is_cancelled() {
        return Err(ApiError::shut_down());
    }
    if is_long_running(incoming) {
        return Ok(());
    }
    timeout::check(incoming.query.text("timeout"))
}

/// Returns whether a request has no end of its own, or is none of the API.
///
/// Source: `BasicLongRunningRequestCheck` in `k8s.io/apiserver/pkg/server/filters`.
fn is_long_running(incoming: &IncomingRequest) -> bool {
    match &incoming.route {
        Route::Admin(_) => true,
        Route::Objects(target) => {
            let subresource = target.subresource.as_deref().unwrap_or_default();
            // A path behind it is that of the request to be passed on.
            let is_stream = matches!(
                subresource.split('/').next().unwrap_or_default(),
                "attach" | "exec" | "log" | "portforward" | "proxy"
            );
            is_stream || incoming.verb() == Some(Verb::Watch)
        }
        _ => false,
    }
}

/// Refuses the older path of a watch that is not routed, and any method on it but GET.
///
/// Handlers of custom resources go by the verb alone, and watch whatever the method.
fn check_watch_path(
    resource: &Resource,
    incoming: &IncomingRequest,
    target: &Target,
) -> Result<(), ApiError> {
    let is_outside = resource.namespaced
        && target.namespace.is_none()
        && incoming.query.watched_name().is_some();
    let is_watched = !resource.rules.review && !resource.rules.read_only;
    if target.subresource.is_some() || is_outside || !is_watched {
        return Err(ApiError::unknown_resource());
    }
    if *incoming.method() != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    Ok(())
}

fn custom_verb(resource: &Resource, incoming: &IncomingRequest, target: &Target) -> Option<Verb> {
    let verb = Verb::of_custom(incoming.method(), target, incoming.query.watches());
    verb.filter(|_| resource.rules.custom)
}

/// Refuses a method that has no meaning.
fn unsupported(resource: &Resource, target: &Target) -> Reply {
    // There is no path of one object outside of its namespace.
    let is_outside = resource.namespaced && target.namespace.is_none();
    if target.name.is_some() && (is_outside || resource.rules.review) {
        return ApiError::unknown_resource().into();
    }
    if !resource.rules.custom {
        return ApiError::method_not_allowed().into();
    }
    refused(resource, ApiError::verb_not_supported("", resource))
}

/// Answers an error, with a warning if the resource is deprecated.
///
/// Without a route there is no warning.
fn refused(resource: &Resource, error: ApiError) -> Reply {
    let has_route = resource.rules.custom || !error.is_without_route();
    let deprecation = resource.deprecation.iter().filter(|_| has_route).cloned();
    Reply::from(error).warnings(&deprecation.collect::<Vec<String>>())
}

/// Refuses verbs that a resource does not have, and those that need a namespace.
fn check_verb(resource: &Resource, target: &Target, verb: Verb) -> Result<(), ApiError> {
    if resource.rules.review && target.name.is_some() {
        // What is only created has no path of one object.
        return Err(ApiError::unknown_resource());
    }
    if resource.rules.read_only && verb == Verb::Watch {
        return Err(ApiError::watch_not_supported(&resource.plural));
    }
    let is_served = match (resource.rules.review, resource.rules.read_only) {
        (true, _) => verb == Verb::Create,
        (_, true) => matches!(verb, Verb::Get | Verb::List),
        _ => true,
    };
    let has_scope = !resource.namespaced || target.namespace.is_some() || spans_namespaces(verb);
    if is_served && has_scope {
        Ok(())
    } else if is_served && resource.rules.custom {
        Err(ApiError::page_not_found())
    } else if is_served && target.name.is_some() {
        Err(ApiError::unknown_resource())
    } else {
        Err(ApiError::method_not_allowed())
    }
}

/// Returns whether a verb makes sense for all namespaces at once.
fn spans_namespaces(verb: Verb) -> bool {
    matches!(verb, Verb::List | Verb::Watch)
}

/// Reads the body of a request; clients with a connection have a deadline.
async fn read<B>(server: &Server, incoming: &IncomingRequest, body: B) -> Result<Bytes, ApiError>
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let timeout = if incoming.in_process {
        Duration::ZERO
    } else {
        server.time.body_timeout
    };
    let read = body::read(body, timeout).await;
    if let Err(error) = &read
        && error.code == StatusCode::GATEWAY_TIMEOUT
    {
        server.count_cut_off();
        tracing::warn!(
            path = incoming.path(),
            "the body of a request does not come"
        );
    }
    read
}
