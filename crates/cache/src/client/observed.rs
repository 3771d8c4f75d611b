//! Observed clients: call a gate before writes, ask its fence, and report successful writes.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use kube::client::Body;
use lariat_client::{AnswerBody, Answering, ClientIdentity, Fenced};
use lariat_core::Fence;
use tower::{BoxError, Service};
use tracing::{Instrument, Span};

use super::dry_run;
use super::gate::{WriteGate, WriteResult};
use super::pending::PendingWrite;
use super::span;
use super::write::{KindCache, OF_THE_OBJECT, Sent, Write, WriteObserver, WriteVerb};

/// A service that adds an identity, calls a gate before writes, and reports writes.
#[derive(Clone)]
pub(super) struct Observed {
    pub(super) client: Answering,
    pub(super) identity: ClientIdentity,
    pub(super) headers: HeaderMap,
    pub(super) observer: Arc<dyn WriteObserver>,
    pub(super) gate: GateOf,
}

/// The gate of a client.
#[derive(Clone)]
pub(super) enum GateOf {
    /// The gate of the factory, once it is set.
    Factory(Arc<OnceLock<Arc<dyn WriteGate>>>),
    /// The gate of the factory, without its fence.
    Unfenced(Arc<OnceLock<Arc<dyn WriteGate>>>),
    /// A gate of the client's own.
    Own(Arc<dyn WriteGate>),
}

impl GateOf {
    fn get(&self) -> Option<&dyn WriteGate> {
        match self {
            Self::Factory(gate) | Self::Unfenced(gate) => gate.get().map(|gate| &**gate),
            Self::Own(gate) => Some(&**gate),
        }
    }

    /// Returns the fence of a write that the gate has admitted.
    ///
    /// Dry runs and questions store nothing, so they need none.
    fn fence(&self, write: Option<&Write>) -> Option<Box<dyn Fence>> {
        let write = write.filter(|write| !write.is_dry_run && !write.is_question());
        write?;
        match self {
            Self::Unfenced(_) => None,
            Self::Factory(_) | Self::Own(_) => self.get()?.fence(),
        }
    }
}

/// Forwards to an observer that is set after the client was created.
pub(super) struct Late(pub(super) Arc<OnceLock<Arc<dyn WriteObserver>>>);

impl WriteObserver for Late {
    fn cache_of(&self, write: &Write) -> Option<KindCache> {
        self.0.get()?.cache_of(write)
    }

    fn wrote(&self, write: &Write, answer: &[u8], sent: Sent) {
        if let Some(observer) = self.0.get() {
            observer.wrote(write, answer, sent);
        }
    }
}

impl Service<Request<Body>> for Observed {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<AnswerBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        for (name, value) in &self.headers {
            // Appended, because each impersonated group is a header of the same name.
            request.headers_mut().append(name, value.clone());
        }
        self.identity.sign(&mut request);
        // `None` for reads, which skip the gate and the caches.
        let write = Write::of(&request);
        let sending = Sending {
            client: self.client.clone(),
            observer: Arc::clone(&self.observer),
            gate: self.gate.clone(),
        };
        Box::pin(async move {
            // Created here rather than above: this runs on the task of the caller, to whose span the write belongs.
            let span = span::of(write.as_ref(), &*sending.observer);
            let sent = sending.send(request, write, &span);
            let result = sent.instrument(span.clone()).await;
            span::ended(&span, &result);
            result
        })
    }
}

/// What one request needs until it is answered.
struct Sending {
    client: Answering,
    observer: Arc<dyn WriteObserver>,
    gate: GateOf,
}

impl Sending {
    async fn send(
        self,
        mut request: Request<Body>,
        mut write: Option<Write>,
        span: &Span,
    ) -> Result<Response<AnswerBody>, BoxError> {
        let mut options = None;
        if let Some(write) = write.as_mut().filter(|write| write.is_deletion()) {
            // The options of a deletion, and so whether it is a dry run, are in its body.
            let (parts, body) = request.into_parts();
            let bytes: Bytes = body.collect().await?.to_bytes();
            write.read_options(&bytes);
            request = Request::from_parts(parts, Body::from(bytes.clone()));
            options = Some(bytes);
        }
        // Called here rather than when the request is created: this runs on the task of the caller.
        let receipt = match (&mut write, self.gate.get()) {
            (Some(write), Some(gate)) => {
                dry_run::pass(gate, &*self.observer, write, &mut request, options.as_ref())?
            }
            _ => None,
        };
        // Only a gate compares a dry run with the state before it, so only then is that state read.
        let is_dry_run = write.as_ref().is_some_and(|write| write.is_dry_run);
        let judged = write.as_ref().filter(|_| is_dry_run && receipt.is_some());
        let look = judged.and_then(|write| read_of(write, &request));
        let live = live(&self.client, look).await;
        // Before the request is sent: what the caches know now is older than the answer. Only for writes whose answer
        // shows an object of the cache.
        let sent = write.as_ref().filter(|write| write.shows());
        let sent = sent.map(|write| Sent::now(write, &*self.observer));
        self.fence(&mut request, write.as_ref());
        let response = match self.client.send(request).await {
            Ok(response) => response,
            Err(unanswered) => {
                // If the request may have reached the server, its result is unknown and the receipt is dropped.
                if let Some(receipt) = receipt.filter(|_| !unanswered.was_sent()) {
                    receipt.ended(&WriteResult::NotSent);
                }
                return Err(unanswered.into_inner());
            }
        };
        let status = response.status();
        span.record("status", status.as_u16());
        let write = write.filter(|write| write.shows() && status.is_success());
        // Only then the body is buffered; other answers are streamed to the caller.
        let needs_body = write.is_some() || receipt.is_some();
        let (response, body) = if needs_body && is_json(&response) {
            read(response).await?
        } else {
            (response, None)
        };
        // Before the answer is returned: a caller that continues reads its own write from the cache.
        if let Some((write, body)) = write.zip(body.as_ref()) {
            span::creates(span, &write, body);
            self.publish(&write, body, sent.unwrap_or_default());
        }
        if let Some(receipt) = receipt {
            receipt.ended(&WriteResult::Answered {
                status,
                body: body.as_deref(),
                before: live.as_deref(),
                is_dry_run,
            });
        }
        Ok(response)
    }

    /// Adds its fence to a request, if it has one.
    fn fence(&self, request: &mut Request<Body>, write: Option<&Write>) {
        if let Some((write, fence)) = write.zip(self.gate.fence(write)) {
            let subject = PendingWrite::of(write, request, &*self.observer).to_string();
            request.extensions_mut().insert(Fenced::new(fence, subject));
        }
    }

    /// Applies the answer of a write to the caches.
    fn publish(&self, write: &Write, body: &[u8], sent: Sent) {
        let mut sent = Some(sent);
        let mut publish = || {
            let sent = sent.take().unwrap_or_default();
            self.observer.wrote(write, body, sent);
        };
        match self.gate.get() {
            Some(gate) => gate.attribute(&mut publish),
            None => publish(),
        }
    }
}

/// Creates the request that reads the object of an update or patch.
///
/// The read has the same identity as the write.
fn read_of<B>(write: &Write, request: &Request<B>) -> Option<Request<Body>> {
    let changes = matches!(write.verb(), WriteVerb::Update | WriteVerb::Patch);
    let subresource = write.subresource.as_deref();
    if !changes || subresource.is_some_and(|name| !OF_THE_OBJECT.contains(&name)) {
        return None;
    }
    let whole = request.uri().path();
    let path = subresource.map_or(Some(whole), |name| whole.strip_suffix(name))?;
    let mut read = Request::get(path.trim_end_matches('/'));
    let headers = read.headers_mut()?;
    headers.clone_from(request.headers());
    headers.remove(header::CONTENT_TYPE);
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    read.body(Body::empty()).ok()
}

/// Reads an object; `None` if it does not exist or may not be read.
async fn live(client: &Answering, read: Option<Request<Body>>) -> Option<Bytes> {
    let answer = client.send(read?).await.ok()?;
    if !answer.status().is_success() {
        return None;
    }
    let body = answer.into_body().collect().await.ok()?;
    Some(body.to_bytes())
}

/// Reads the body of an answer; returns the answer with an unread copy of it.
async fn read(
    response: Response<AnswerBody>,
) -> Result<(Response<AnswerBody>, Option<Bytes>), BoxError> {
    let (parts, body) = response.into_parts();
    let bytes: Bytes = body.collect().await?.to_bytes();
    let response = Response::from_parts(parts, Body::from(bytes.clone()).into());
    Ok((response, Some(bytes)))
}

fn is_json<B>(response: &Response<B>) -> bool {
    let headers = response.headers();
    let json = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
    json && !headers.contains_key(header::CONTENT_ENCODING)
}
