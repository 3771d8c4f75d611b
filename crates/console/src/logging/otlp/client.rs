//! Sends requests to the collector, over HTTP/1.1 without TLS.

use std::fmt;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use parking_lot::Mutex;
use tokio::runtime::{self, Runtime};
use tokio::time;
use tracing::subscriber::{NoSubscriber, with_default};

/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of bytes that are read of a response.
const MOST: usize = 1024 * 1024;

/// An HTTP client with a runtime of its own, on the thread that exports.
///
/// So the remaining spans can be exported when the runtime of the program has ended, or when its only thread waits for
/// the export.
pub(super) struct CollectorClient {
    /// None while it is dropped.
    runtime: Mutex<Option<Runtime>>,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl CollectorClient {
    pub(super) fn new() -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self {
            runtime: Mutex::new(Some(runtime)),
            client: Client::builder(TokioExecutor::new()).build_http(),
        })
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = async {
            let answer = self.client.request(request.map(Full::new)).await?;
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, MOST).collect().await?.to_bytes();
            Ok(Response::from_parts(parts, body))
        };
        time::timeout(TIMEOUT, answer).await?
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let runtime = self.runtime.lock();
        let runtime = runtime.as_ref().ok_or("the export has ended")?;
        // Without a subscriber: spans of the client would be exported too, and exporting them would create more.
        with_default(NoSubscriber::new(), || runtime.block_on(self.send(request)))
    }
}

impl Drop for CollectorClient {
    fn drop(&mut self) {
        // Dropping a runtime blocks, which panics inside another runtime.
        if let Some(runtime) = self.runtime.get_mut().take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for CollectorClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectorClient").finish_non_exhaustive()
    }
}
