//! A client that counts its requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::ACCEPT;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use tokio::runtime::Handle;
use tokio::time;

use super::totals::{RequestStatus, Totals};

/// A client whose requests are counted; clones share the counters.
///
/// A request that is dropped before its answer counts as one without an answer.
#[derive(Clone)]
pub struct CountedClient {
    client: Client,
    totals: Arc<Totals>,
}

impl CountedClient {
    /// Counts the requests through this handle to a client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            totals: Arc::default(),
        }
    }

    /// Returns another client that shares the counters with this one.
    pub(crate) fn counting(&self, client: Client) -> Self {
        let totals = Arc::clone(&self.totals);
        Self { client, totals }
    }

    /// Returns the client that does not count.
    #[must_use]
    pub fn uncounted(&self) -> &Client {
        &self.client
    }

    /// Returns a kube client that shares the counters with this one.
    ///
    /// The client needs a task and thus a runtime: outside of one, requests are not counted.
    #[must_use]
    pub fn to_kube(&self) -> Client {
        if Handle::try_current().is_err() {
            return self.client.clone();
        }
        let namespace = self.client.default_namespace().to_owned();
        let counted = self.clone();
        let send = move |request| {
            let counted = counted.clone();
            async move { counted.send(request).await }
        };
        Client::new(tower::service_fn(send), namespace)
    }

    /// Returns the requests so far, with their results.
    #[must_use]
    pub fn status(&self) -> RequestStatus {
        self.totals.status()
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer. A refusal of the API server is an answer.
    ///
    /// # Cancel safety
    ///
    /// A request whose future is dropped may have been sent.
    pub async fn send(&self, mut request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let counting = self.totals.begin(&mut request);
        let answer = self.client.send(request).await;
        counting.answered(&answer, Response::status);
        answer
    }

    /// Requests a document, and returns it as text.
    ///
    /// `accept` has the forms that are understood, as in the header `Accept`. The document has at most `limit` bytes
    /// and arrives within `timeout`.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer in time, a refusal, more than `limit` bytes, or bytes that are not UTF-8.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request.
    pub async fn get(
        &self,
        path: &str,
        accept: &str,
        limit: usize,
        timeout: Duration,
    ) -> Result<String, kube::Error> {
        let request = Request::get(path).header(ACCEPT, accept);
        let request = request
            .body(Body::empty())
            .map_err(kube::Error::HttpError)?;
        let text = time::timeout(timeout, self.text(request, limit)).await;
        text.unwrap_or_else(|_| Err(kube::Error::Service(Late(timeout).into())))
    }

    async fn text(&self, request: Request<Body>, limit: usize) -> Result<String, kube::Error> {
        let (parts, body) = self.send(request).await?.into_parts();
        if parts.status.is_client_error() || parts.status.is_server_error() {
            return Err(refused(parts.status, body).await);
        }
        let body = read(body, limit).await?;
        String::from_utf8(body).map_err(kube::Error::FromUtf8)
    }
}

impl fmt::Debug for CountedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountedClient").finish_non_exhaustive()
    }
}

/// How many bytes of an error's body are read at most.
const ERROR_LIMIT: usize = 1024 * 1024;

/// How many characters of a body that is not a `Status` an error contains.
const SHOWN: usize = 300;

/// The error of an answer above its limit.
#[derive(Debug, thiserror::Error)]
#[error("the answer is too large: it has more than {limit} bytes")]
struct TooLarge {
    limit: usize,
}

/// The error of an answer that did not arrive in time.
#[derive(Debug, thiserror::Error)]
#[error("no answer from the API server within {0:?}")]
struct Late(Duration);

async fn read(body: Body, limit: usize) -> Result<Vec<u8>, kube::Error> {
    let read = Limited::new(body, limit).collect().await;
    let body = read.map_err(|error| {
        if error.is::<LengthLimitError>() {
            kube::Error::Service(TooLarge { limit }.into())
        } else {
            kube::Error::Service(error)
        }
    })?;
    Ok(body.to_bytes().into())
}

/// Reads the body of an error, as kube does, but not for ever.
async fn refused(status: StatusCode, body: Body) -> kube::Error {
    let body = match read(body, ERROR_LIMIT).await {
        Ok(body) => body,
        Err(error) => return error,
    };
    let known = serde_json::from_slice::<Status>(&body);
    let status = known.unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(&body);
        let text: String = text.trim().chars().take(SHOWN).collect();
        Status::failure(&text, "Failed to parse error data").with_code(status.as_u16())
    });
    kube::Error::Api(status.boxed())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use futures::StreamExt;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use lariat_core::describe;

    use super::*;

    /// Sends a request that is answered with a status and spaces without end; returns the error and the bytes sent.
    async fn endless(status: u16, limit: usize) -> (kube::Error, usize) {
        let sent = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let service = tower::service_fn(move |_: Request<Body>| {
            let count = Arc::clone(&count);
            let frames = futures::stream::repeat_with(move || {
                count.fetch_add(10_000, std::sync::atomic::Ordering::Relaxed);
                Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b' '; 10_000])))
            });
            let mut answer = Response::new(StreamBody::new(frames.boxed()));
            *answer.status_mut() = StatusCode::from_u16(status).expect("it is a status");
            async move { Ok::<_, Infallible>(answer) }
        });
        let client = CountedClient::new(Client::new(service, "default"));
        let error = client.get("/apis", "*/*", limit, Duration::MAX).await;
        let sent = sent.load(std::sync::atomic::Ordering::Relaxed);
        (error.expect_err("it has no end"), sent)
    }

    #[tokio::test]
    async fn answer_without_end_fails_at_its_limit() {
        for (status, limit, most) in [(200, 50_000, 60_000), (503, 50_000, ERROR_LIMIT + 20_000)] {
            let (error, sent) = endless(status, limit).await;
            let error = describe(&error);
            assert!(error.contains("the answer is too large"), "{error}");
            assert!(sent <= most, "{sent} bytes were read");
        }
    }
}
