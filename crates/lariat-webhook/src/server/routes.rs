//! Routes a request to the handler of its path.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use lariat_controller::SharedControllerFactory;
use tokio::time::{Instant, timeout_at};

use super::health::WebhookHealth;
use super::respond::{probe, respond};
use crate::admission::{self, Handler};
use crate::conversion::{self, Convert};
use crate::deadline::Deadline;
use crate::metrics::WebhookMetrics;
use crate::wire::Answer;

/// The handler at a path.
pub(crate) enum Target {
    /// A handler of admission reviews, with the full name of its webhook.
    Admission(String, Arc<Handler>),
    Conversion(Arc<Convert>),
}

/// The maximum lengths of bodies in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) admission: usize,
    pub(crate) conversion: usize,
}

/// Everything that a server answers.
pub(crate) struct Routes {
    pub(crate) targets: HashMap<String, Target>,
    pub(crate) factory: SharedControllerFactory,
    pub(crate) limits: Limits,
    pub(crate) metrics: WebhookMetrics,
}

impl Routes {
    pub(super) fn router(self, health: WebhookHealth) -> Router {
        let routes = Arc::new(self);
        Router::new().fallback(move |request: Request<Body>| {
            let (routes, health) = (Arc::clone(&routes), health.clone());
            async move { routes.route(request, &health).await }
        })
    }

    async fn route(&self, request: Request<Body>, health: &WebhookHealth) -> Response<Body> {
        match request.uri().path() {
            // Liveness says only that the process answers. A restart would not cure a missing permission or
            // certificate.
            "/healthz" | "/livez" => return probe(Ok(())),
            "/readyz" => return probe(health.check()),
            _ => {}
        }
        let path = request.uri().path().to_owned();
        let Some(target) = self.targets.get(&path) else {
            return respond(Answer::not_found(&path));
        };
        // Dropped with the future too, if the client closes the connection.
        let (begun, _in_flight) = (Instant::now(), self.metrics.begin(&path));
        let answer = self.answer(target, request).await;
        self.metrics
            .answered(&path, answer.status(), begun.elapsed());
        respond(answer)
    }

    async fn answer(&self, target: &Target, request: Request<Body>) -> Answer {
        if request.method() != Method::POST {
            return Answer::method(request.method());
        }
        let media_type = request.headers().get(CONTENT_TYPE);
        let media_type = media_type
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        // Parameters such as a charset do not matter.
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Answer::media_type(media_type);
        }
        // The deadline covers the body too: time that a slow body takes is missing for the handler.
        let deadline = Deadline::of_query(request.uri().query());
        let most = match target {
            Target::Admission(..) => self.limits.admission,
            Target::Conversion(_) => self.limits.conversion,
        };
        let body = match read(request.into_body(), most, deadline).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        match target {
            Target::Admission(name, handler) => {
                admission::review(name, &**handler, &self.factory, &body, deadline).await
            }
            Target::Conversion(convert) => conversion::review(&**convert, &body, deadline).await,
        }
    }
}

/// Reads a body, which must not be too long and must arrive in time.
async fn read(body: Body, most: usize, deadline: Deadline) -> Result<Bytes, Answer> {
    match timeout_at(deadline.at, Limited::new(body, most).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Answer::too_large(most)),
        Ok(Err(error)) => Err(Answer::bad_request(format!(
            "the body ended early: {error}"
        ))),
        Err(_) => Err(Answer::bad_request(format!(
            "the body did not arrive within {limit:?}",
            limit = deadline.limit
        ))),
    }
}
