//! A client that counts its requests.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tower::{BoxError, Service};

use super::totals::{RequestStatus, Totals};

/// A client whose requests are counted; clones share the counters.
#[derive(Clone)]
pub(crate) struct CountedClient {
    client: Client,
    totals: Arc<Totals>,
}

impl CountedClient {
    pub(crate) fn new(client: Client) -> Self {
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
    pub(crate) fn uncounted(&self) -> &Client {
        &self.client
    }

    /// Returns a kube client that shares the counters with this one.
    ///
    /// It needs a task and thus a runtime: outside of one, requests are not counted.
    pub(crate) fn to_kube(&self) -> Client {
        if Handle::try_current().is_err() {
            return self.client.clone();
        }
        let namespace = self.client.default_namespace().to_owned();
        Client::new(self.clone(), namespace)
    }

    pub(crate) fn status(&self) -> RequestStatus {
        self.totals.status()
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, kube::Error> {
        let counting = self.totals.begin(&mut request);
        let answer = self.client.send(request).await;
        counting.answered(&answer, Response::status);
        answer
    }

    /// Sends a request and reads its answer as text.
    pub(crate) async fn request_text(
        &self,
        mut request: Request<Vec<u8>>,
    ) -> Result<String, kube::Error> {
        let counting = self.totals.begin(&mut request);
        let answer = self.client.request_text(request).await;
        counting.answered(&answer, |_| http::StatusCode::OK);
        answer
    }

    /// Sends a request and reads its answer as a type.
    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        mut request: Request<Vec<u8>>,
    ) -> Result<T, kube::Error> {
        let counting = self.totals.begin(&mut request);
        let answer = self.client.request(request).await;
        counting.answered(&answer, |_| http::StatusCode::OK);
        answer
    }
}

impl Service<Request<Body>> for CountedClient {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let counted = self.clone();
        Box::pin(async move { Ok(counted.send(request).await?) })
    }
}
