//! Requests on shared connections: HTTP/2 if the server supports it, else HTTP/1.1.

use std::convert::Infallible;
use std::error::Error;
use std::future;
use std::sync::Arc;

use futures::FutureExt;
use http::uri::Scheme;
use http::{HeaderValue, Request, Response, StatusCode, Uri, Version, header};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_util::client::legacy;
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use crate::credentials::{CredentialError, Credentials, Http1, Login, Refusal, Transport};
use crate::dial::{self, NotConnected};
use crate::driven;
use crate::kubeconfig::Origin;
use crate::liveness::{Liveness, TEST_PATH, TestedBody};
use crate::pool::{Health, OpenError, Pool, Replacements, Sent, Sign};
use crate::request::{self, Length};
use crate::requests::ServerSlot;
use crate::separate::Recipe;

/// Whether requests share connections by HTTP/2.
///
/// ```no_run
/// use lariat::cache::Http2;
///
/// # async fn example(config: kube::Config) -> Result<(), lariat::cache::ConnectError> {
/// // One connection for each watch, as kube's own client opens.
/// let client = lariat::from_config(config, Http2::Off).await?;
/// # drop(client);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Http2 {
    /// Negotiates over TLS, and uses HTTP/1.1 without TLS, as Kubernetes clients do.
    #[default]
    Negotiated,
    /// Uses HTTP/2 without negotiation.
    ///
    /// The option is for servers without TLS that are known to support HTTP/2.
    PriorKnowledge,
    /// Uses HTTP/1.1 only, with one connection for each watch.
    Off,
}

type RouterBody = UnsyncBoxBody<bytes::Bytes, BoxError>;

/// Creates a client for a configuration, with shared connections if possible.
///
/// Refused credentials are read again from `origin`, if there is one.
pub(crate) async fn client(
    config: Config,
    origin: Option<Origin>,
    http2: Http2,
) -> Result<Client, CredentialError> {
    let namespace = config.default_namespace.clone();
    let (base, headers) = (config.base_uri_layer(), config.extra_headers_layer()?);
    let layers = ServiceBuilder::new().layer(base).layer(headers);
    // The path of the liveness test, after the same layers as all requests.
    let mut test = Request::new(());
    *test.uri_mut() = Uri::from_static(TEST_PATH);
    let mirror = tower::service_fn(|request| future::ready(Ok::<_, Infallible>(request)));
    let Ok(test) = layers.clone().service(mirror).oneshot(test).await;
    let recipe = recipe(config.clone(), origin.clone(), http2);
    let credentials = Credentials::read(config.clone(), origin, http2 != Http2::Off).await?;
    let connections = Arc::new(Connections::new(&config, credentials, http2, test));
    let wire = tower::service_fn(move |mut request: Request<Body>| {
        let connections = Arc::clone(&connections);
        // Callers build requests with any version; the connection decides which one is used.
        *request.version_mut() = Version::HTTP_11;
        if let Some(slot) = request.extensions().get::<ServerSlot>() {
            slot.note(&connections.url);
        }
        async move { connections.send(request).await }
    });
    // The outermost layer, which sees a request as it was sent.
    let offering = ServiceBuilder::new().map_request(move |request| {
        recipe.offer(&request);
        request
    });
    Ok(Client::new(offering.layer(layers).service(wire), namespace))
}

/// Returns how to make further clients for a configuration.
///
/// They have few requests, such as those of a lease, and one that gets no answer has to leave its connection. With
/// HTTP/1.1 the next request opens another one; with HTTP/2 it would wait until a ping has failed.
fn recipe(config: Config, origin: Option<Origin>, http2: Http2) -> Recipe {
    let http2 = match http2 {
        Http2::Negotiated => Http2::Off,
        fixed => fixed,
    };
    Recipe::new(move || client(config.clone(), origin.clone(), http2).boxed())
}

/// An answer that is not HTTP.
#[derive(Debug, thiserror::Error)]
#[error("the server at {url} does not speak HTTP; if it expects TLS, its URL begins with https://")]
struct NotHttp {
    url: Uri,
    source: BoxError,
}

/// The connections to one server.
struct Connections {
    url: Uri,
    credentials: Arc<Credentials>,
    /// Tests whether the server still answers, over HTTP/1.1.
    liveness: Arc<Liveness>,
    /// HTTP/2 connections, shared by many requests.
    pool: Pool,
    /// The judgement of all HTTP/1.1 connections; watches have connections of their own.
    judged: Mutex<(Health, Replacements)>,
    /// The protocol of the server; `None` before it is known.
    speaks: Mutex<Option<Speaks>>,
    /// Whether the protocol is set by the options rather than negotiated.
    is_fixed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Http1,
    Http2,
}

impl Connections {
    /// Prepares requests to the server of a configuration.
    ///
    /// `test` is the request that tests liveness.
    fn new(config: &Config, credentials: Credentials, http2: Http2, test: Request<()>) -> Self {
        let url = config.cluster_url.clone();
        let speaks = match http2 {
            Http2::PriorKnowledge => Some(Speaks::Http2),
            Http2::Off => Some(Speaks::Http1),
            Http2::Negotiated if url.scheme() == Some(&Scheme::HTTP) => Some(Speaks::Http1),
            Http2::Negotiated => None,
        };
        let credentials = Arc::new(credentials);
        Self {
            url,
            liveness: Liveness::new(Arc::clone(&credentials), test),
            credentials,
            pool: Pool::new(http2 == Http2::PriorKnowledge),
            judged: Mutex::default(),
            speaks: Mutex::new(speaks),
            is_fixed: speaks.is_some(),
        }
    }

    /// Sends a request; repeats it once with other credentials after a refusal.
    async fn send(&self, request: Request<Body>) -> Result<Response<RouterBody>, BoxError> {
        let login = self.credentials.current().await?;
        let copy = self
            .credentials
            .can_change()
            .then(|| request::copy(&request));
        let is_passed_on = request::is_passed_on(request.uri().path());
        let request = login.sign(request).await?;
        let used = request.headers().get(header::AUTHORIZATION).cloned();
        let answer = self.send_as(&login, request).await;
        let Some(refusal) = login.refusal(&answer) else {
            return answer;
        };
        let Some(next) = self.credentials.after_refusal(&login, refusal).await else {
            return answer;
        };
        // A request with a TLS error is repeated only if it was not sent, that is if the connection was not
        // established. A 401 to a request that the server passes on may be the answer of the program behind it.
        let is_safe = answer
            .as_ref()
            .map_or_else(|error| was_not_sent(&**error), |_| !is_passed_on);
        let Some(again) = copy.flatten().filter(|_| is_safe) else {
            return answer;
        };
        let again = next.sign(again).await?;
        // The same credentials would be refused again.
        if next.is_same(
            &login,
            used.as_ref(),
            again.headers().get(header::AUTHORIZATION),
        ) {
            return answer;
        }
        drop(answer);
        self.send_as(&next, again).await
    }

    async fn send_as(
        &self,
        login: &Login,
        request: Request<Body>,
    ) -> Result<Response<RouterBody>, BoxError> {
        let transport = &login.transport;
        if request.headers().contains_key(header::UPGRADE) {
            return self.send_http1(&transport.upgrades, request).await;
        }
        // The protocol is unknown before the first connection: the pool opens it, and learns what the server has
        // negotiated.
        let speaks = *self.speaks.lock();
        if speaks == Some(Speaks::Http1) && request::is_watch(&request) {
            return self.send_driven(transport, request).await;
        }
        if speaks == Some(Speaks::Http1) {
            return self.send_judged(transport, request).await;
        }
        let (dialer, number) = (&transport.dialer, transport.number);
        let request = match self.pool.send(dialer, number, request).await {
            Ok(Sent::Answered(answer)) => {
                return Ok(answer.map(BodyExt::boxed_unsync));
            }
            Ok(Sent::NotHttp2(request)) => request,
            Err(error) => return Err(error),
        };
        *self.speaks.lock() = Some(Speaks::Http1);
        self.send_http1(&transport.http1, request).await
    }

    /// Sends a request over HTTP/1.1; after some failures in a row, idle connections are not used again.
    async fn send_judged(
        &self,
        transport: &Transport,
        request: Request<Body>,
    ) -> Result<Response<RouterBody>, BoxError> {
        let length = Length::of(&request);
        let answer = self.send_http1(&transport.http1, request).await;
        let of = |response: &Response<RouterBody>| Sign::of(length, response.status());
        let sign = answer.as_ref().map_or(Sign::Fails, of);
        let (health, replacements) = &mut *self.judged.lock();
        health.record(sign);
        if health.is_suspect() && replacements.begin(Instant::now()) {
            *health = Health::default();
            transport.forget_idle();
        } else if sign == Sign::Works {
            replacements.works();
        }
        answer
    }

    async fn send_http1(
        &self,
        http1: &Http1,
        request: Request<Body>,
    ) -> Result<Response<RouterBody>, BoxError> {
        let response = http1
            .get()
            .request(request)
            .await
            .map_err(|error| self.explain(error))?;
        // The server may have been replaced by one with HTTP/2. This answer is used; the next request shares a
        // connection.
        if response.version() == Version::HTTP_2 && !self.is_fixed {
            *self.speaks.lock() = Some(Speaks::Http2);
        }
        if response.version() == Version::HTTP_2 {
            // HTTP/2 pings test that connection.
            return Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()));
        }
        self.liveness.received();
        let liveness = Arc::clone(&self.liveness);
        Ok(response.map(|body| TestedBody::new(body, liveness).boxed_unsync()))
    }

    /// Sends a watch on a connection that the reader of the answer drives.
    async fn send_driven(
        &self,
        transport: &Transport,
        request: Request<Body>,
    ) -> Result<Response<RouterBody>, BoxError> {
        let dialer = transport.http1.dialer();
        let socket = dialer.dial().await?;
        if socket.is_http2 {
            // The server has been replaced by one with HTTP/2.
            dialer.put(socket);
            return self.send_http1(&transport.http1, request).await;
        }
        let response = driven::send(socket, request)
            .await
            .map_err(|error| self.explain(error))?;
        self.liveness.received();
        let liveness = Arc::clone(&self.liveness);
        Ok(response.map(|body| TestedBody::new(body, liveness).boxed_unsync()))
    }

    /// Adds a hint to the error if a TLS server may have answered plain HTTP.
    fn explain(&self, error: impl Error + Send + Sync + 'static) -> BoxError {
        let is_strange = find::<hyper::Error>(&error).is_some_and(hyper::Error::is_parse);
        if is_strange && self.url.scheme() == Some(&Scheme::HTTP) {
            let (url, source) = (self.url.clone(), error.into());
            return NotHttp { url, source }.into();
        }
        error.into()
    }
}

impl Login {
    /// Returns how the credentials were refused, if they were.
    fn refusal(&self, answer: &Result<Response<RouterBody>, BoxError>) -> Option<Refusal> {
        match answer {
            Ok(response) => {
                (response.status() == StatusCode::UNAUTHORIZED).then_some(Refusal::Unauthorized)
            }
            Err(error) => {
                let error = &**error;
                // A server that does not accept a certificate ends the connection when it is first used.
                let has_ended = self.has_client_certificate() && has_ended(error);
                (self.has_certificates() && (is_tls(error) || has_ended)).then_some(Refusal::Tls)
            }
        }
    }

    /// Returns whether the credentials are the same as those used before.
    fn is_same(
        &self,
        before: &Self,
        used: Option<&HeaderValue>,
        header: Option<&HeaderValue>,
    ) -> bool {
        self.transport.number == before.transport.number && used == header
    }
}

/// Returns whether a new connection ended before its first answer.
fn has_ended(error: &(dyn Error + 'static)) -> bool {
    matches!(find::<OpenError>(error), Some(OpenError::Ended { .. }))
}

/// Returns whether TLS failed, in most cases because of a certificate.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    let connecting = find::<NotConnected>(error);
    let opening = find::<OpenError>(error);
    connecting.is_some_and(|error| error.is_tls)
        || matches!(opening, Some(OpenError::NotConnected(error)) if error.is_tls)
        || dial::is_tls(error)
}

/// Returns whether a failed request did not reach the API server.
///
/// True if no connection was established or there were no credentials. Any other request may have been carried out.
pub(crate) fn was_not_sent(error: &(dyn Error + 'static)) -> bool {
    let legacy = find::<legacy::Error>(error);
    legacy.is_some_and(legacy::Error::is_connect)
        || find::<OpenError>(error).is_some()
        || find::<NotConnected>(error).is_some()
        || find::<CredentialError>(error).is_some()
}

/// Finds an error of a type among the sources of another.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut causes = std::iter::successors(Some(error), |each| (**each).source());
    causes.find_map(|each| each.downcast_ref::<E>())
}
