//! Serves the requests of a connection.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Request, StatusCode, header};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::LONGEST_URL;
use super::table::{Admitted, InProgress, Place};

/// The timeout for the header of a request.
const HEAD: Duration = Duration::from_secs(30);
/// The timeout for the header of a probe, while all places for other requests are taken.
const PROBE_HEAD: Duration = Duration::from_secs(2);
/// The paths of probes.
const PROBES: [&str; 3] = ["/livez", "/readyz", "/healthz"];
/// The size of a connection's buffer, in bytes.
///
/// The longest URL fits, and at least as many bytes of headers.
const BUFFER: usize = 4 * LONGEST_URL;

/// Serves the requests of a connection until it is closed.
pub(super) async fn requests(
    what: &'static str,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    place: Place,
    stopping: CancellationToken,
) {
    let is_for_probes = place.admitted() == Admitted::Probe;
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: Request<Incoming>| {
        let in_progress = place.begin();
        let is_refused = is_for_probes && !PROBES.contains(&request.uri().path());
        // The router is asked inside the future, so that it sees no request that is refused.
        let router = router.clone();
        async move {
            let response = if is_refused {
                full()
            } else {
                router.call(request).await?
            };
            Ok::<_, std::convert::Infallible>(response.map(|body| Counted { body, in_progress }))
        }
    });
    let head = if is_for_probes { PROBE_HEAD } else { HEAD };
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(!is_for_probes)
        .header_read_timeout(head)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to {what} has ended");
    }
}

/// Returns the response to a request for which there is no place.
fn full() -> Response {
    let message = "all connections have requests in progress: try again";
    let mut response = (StatusCode::SERVICE_UNAVAILABLE, message).into_response();
    let retry = HeaderValue::from_static("1");
    response.headers_mut().insert(header::RETRY_AFTER, retry);
    response
}

/// The body of a response; its request is in progress until the body is sent or dropped.
struct Counted {
    body: Body,
    #[expect(dead_code, reason = "it counts by being dropped")]
    in_progress: InProgress,
}

impl HttpBody for Counted {
    type Data = <Body as HttpBody>::Data;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
