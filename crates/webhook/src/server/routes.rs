//! Routes a request to the handler of its path.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use lariat_controller::SharedControllerFactory;
use tokio::time::{Instant, timeout_at};

use super::budget::{Budget, Exhausted, Share};
use super::health::WebhookHealth;
use super::respond::{Checks, probe, respond};
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
    /// For the bodies of all reviews in progress.
    pub(crate) all: usize,
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
        // A body of the maximum length must fit.
        let Limits {
            admission,
            conversion,
            all,
        } = self.limits;
        let budget = Budget::new(all.max(admission).max(conversion));
        let routes = Arc::new(self);
        Router::new().fallback(move |request: Request<Body>| {
            let (routes, health) = (Arc::clone(&routes), health.clone());
            let share = budget.share();
            async move {
                match probed(&request, &health) {
                    Some(answer) => answer,
                    None => routes.route(request, share).await,
                }
            }
        })
    }

    async fn route(&self, request: Request<Body>, mut share: Share) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let Some(target) = self.targets.get(&path) else {
            return respond(Answer::not_found(&path));
        };
        // Dropped with the future too, if the client closes the connection.
        let (begun, _in_flight) = (Instant::now(), self.metrics.begin(&path));
        let answer = self.answer(target, request, &mut share).await;
        self.metrics
            .answered(&path, answer.status(), begun.elapsed());
        respond(answer)
    }

    async fn answer(&self, target: &Target, request: Request<Body>, share: &mut Share) -> Answer {
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
        let body = match read(request.into_body(), most, share, deadline).await {
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

/// Answers a probe; `None` if the request is none.
///
/// Liveness says only that the process answers. A restart would not cure a missing permission or certificate.
fn probed(request: &Request<Body>, health: &WebhookHealth) -> Option<Response<Body>> {
    let alive: &Checks<'_> = &[("ping", Ok(()))];
    let (name, checks): (_, &Checks<'_>) = match request.uri().path() {
        "/healthz" => ("healthz", alive),
        "/livez" => ("livez", alive),
        "/readyz" => ("readyz", &health.checks()),
        _ => return None,
    };
    let parameters = request.uri().query().unwrap_or_default();
    let mut parameters = form_urlencoded::parse(parameters.as_bytes());
    let is_verbose = parameters.any(|(name, _)| name == "verbose");
    let alerts = is_verbose.then(|| health.alerts());
    Some(probe(name, checks, alerts.as_deref()))
}

/// Reads a body, which must not be too long, must find memory, and must arrive in time.
async fn read(
    mut body: Body,
    most: usize,
    share: &mut Share,
    deadline: Deadline,
) -> Result<Bytes, Answer> {
    // Known beforehand from most clients. A body is refused before it is read then.
    if body.size_hint().lower() > most as u64 {
        return Err(Answer::too_large(most));
    }
    let mut whole = BytesMut::new();
    loop {
        let frame = match timeout_at(deadline.at, body.frame()).await {
            Ok(None) => return Ok(whole.freeze()),
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => {
                return Err(Answer::bad_request(format!(
                    "the body ended early: {error}"
                )));
            }
            Err(_) => {
                return Err(Answer::bad_request(format!(
                    "the body did not arrive within {limit:?}",
                    limit = deadline.limit
                )));
            }
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if whole.len() + data.len() > most {
            return Err(Answer::too_large(most));
        }
        let grown = share.grow(data.len(), deadline.at).await;
        grown.map_err(|Exhausted| Answer::busy())?;
        whole.extend_from_slice(&data);
    }
}
