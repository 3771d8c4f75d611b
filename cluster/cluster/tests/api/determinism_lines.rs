//! The lines of a transcript: requests, their answers, and what watches are sent.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt, Full};
use lariat_cluster::ClusterService;
use parking_lot::Mutex;
use tokio::time::timeout;
use tower_service::Service;

use crate::fuzz_requests::Ask;

/// Longer than any request takes that is answered, on paused time.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// The responses to all clients, in their order.
pub(crate) type Lines = Arc<Mutex<Vec<String>>>;

/// Notes what a request is answered, and of an answer that goes on what comes in a while.
pub(crate) async fn send(mut service: ClusterService, ask: &Ask, name: String, lines: &Lines) {
    let mut request = Request::builder().method(&ask.method).uri(&ask.path);
    for (name, value) in &ask.headers {
        request = request.header(*name, value);
    }
    // What is no URI does not get as far as the cluster.
    let Ok(request) = request.body(Full::<bytes::Bytes>::from(ask.body.clone())) else {
        return;
    };
    lines
        .lock()
        .push(format!("{name}: {} {}", ask.method, ask.path));
    let answered = note(&mut service, request, &name, lines);
    if timeout(TIMEOUT, answered).await.is_err() {
        lines.lock().push(format!("{name}: no more"));
    }
}

/// Notes everything a watch is sent.
pub(crate) async fn follow(
    mut service: ClusterService,
    request: Request<Full<bytes::Bytes>>,
    name: String,
    lines: Lines,
) {
    note(&mut service, request, &name, &lines).await;
}

pub(crate) async fn note(
    service: &mut ClusterService,
    request: Request<Full<bytes::Bytes>>,
    name: &str,
    lines: &Lines,
) {
    let response = match service.call(request).await {
        Ok(response) => response,
        Err(error) => return lines.lock().push(format!("{name}: {error}")),
    };
    let (parts, mut body) = response.into_parts();
    lines
        .lock()
        .push(format!("{name}: {} {:?}", parts.status, parts.headers));
    while let Some(frame) = body.frame().await {
        lines.lock().push(match frame {
            Ok(frame) => format!(
                "{name}: {}",
                frame.into_data().unwrap_or_default().escape_ascii()
            ),
            Err(error) => format!("{name}: {error}"),
        });
    }
    lines.lock().push(format!("{name}: the end"));
}
