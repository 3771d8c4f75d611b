//! The routes of the page, of metrics and of probes.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::request::Parts;
use http::{HeaderValue, header};
use lariat_http::{PAGE_POLICY, PageFile};

use super::answer::{Answered, Shared, typed};
use super::api_routes;
use super::exposition::Format;
use super::refusal::Refusal;
use super::state::ServerState;
use crate::access::Permission;
use crate::health::{Answer, Probe, answer, answer_one};
use crate::page::files;

const TEXT: &str = "text/plain; charset=utf-8";
/// The `Content-Security-Policy` of responses that are no page.
const NO_PAGE: &str = "default-src 'none'; frame-ancestors 'none'";

/// Returns the routes.
pub(super) fn router(state: Arc<ServerState>) -> Router {
    let mut router = Router::new().route("/metrics", get(metrics));
    // Each file has its own route, so there is no path that could leave a folder.
    for page_file in files() {
        let file = move |State(state): Shared, request: Request| file(state, page_file, request);
        router = router.route(page_file.path(), get(file));
    }
    let probes = [
        ("/livez", Probe::Livez),
        ("/healthz", Probe::Healthz),
        ("/readyz", Probe::Readyz),
    ];
    for (path, probe) in probes {
        let all = move |State(state): Shared, request: Request| checks(state, probe, request);
        let one = move |State(state): Shared, Path(name): Path<String>, request: Request| {
            check(state, probe, name, request)
        };
        router = router
            .route(path, get(all))
            .route(&format!("{path}/{{name}}"), get(one));
    }
    router
        .merge(api_routes::router())
        .method_not_allowed_fallback(other_method)
        .fallback(not_found)
        // Around all routes, so that no response is without the headers.
        .layer(map_response(secured))
        .with_state(state)
}

/// Adds security headers for browsers to a response.
async fn secured(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let fixed = HeaderValue::from_static;
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            header::HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, fixed(value));
    }
    let policy = headers.entry(header::CONTENT_SECURITY_POLICY);
    // The page has set its own policy; everything else loads nothing.
    policy.or_insert_with(|| fixed(NO_PAGE));
    response
}

/// Serves a file of the page.
///
/// It needs no authentication: the files contain no data of the program.
async fn file(state: Arc<ServerState>, file: &'static PageFile, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    state.check(&parts)?;
    let mut response = typed(file.content_type(), file.text());
    let policy = HeaderValue::from_static(PAGE_POLICY);
    response
        .headers_mut()
        .insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

async fn metrics(State(state): Shared, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    if state.open_metrics {
        state.check(&parts)?;
        state.check_host(&parts)?;
    } else {
        state.enter(&parts, Permission::Metrics).await?;
    }
    let format = Format::of(&parts.headers);
    let text = format
        .write(&state.registry)
        .map_err(|_| Refusal::internal("a metric of the program cannot be written"))?;
    Ok(typed(format.content_type(), text))
}

/// Serves a probe. A kubelet has no token, so there is no authentication.
async fn checks(state: Arc<ServerState>, probe: Probe, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let checks = state.checkup.checks().await;
    let parameters = parts.uri.query().unwrap_or_default();
    probed(&state, &parts, answer(probe, &checks, parameters))
}

async fn check(state: Arc<ServerState>, probe: Probe, name: String, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let checks = state.checkup.checks().await;
    match answer_one(probe, &checks, &name) {
        Some(answer) => probed(&state, &parts, answer),
        None => Refusal::not_found("the probe has no check of this name").into_response(),
    }
}

/// Returns the response of a probe, with its reasons if the `Host` is allowed.
///
/// A kubelet looks at the status only, and may be configured to send any `Host`.
fn probed(state: &ServerState, parts: &Parts, Answer { status, body }: Answer) -> Response {
    let is_brief = state.check_host(parts).is_err();
    let brief = if status.is_success() { "ok" } else { "failed" };
    let body = if is_brief { brief.to_owned() } else { body };
    let mut response = typed(TEXT, body);
    *response.status_mut() = status;
    response
}

async fn other_method(State(state): Shared, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    state.check(&parts)?;
    let allow = match parts.uri.path() {
        api_routes::ACTIONS => "POST",
        _ => "GET, HEAD",
    };
    Err(Refusal::method(allow))
}

async fn not_found(State(state): Shared, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    state.enter(&parts, Permission::Look).await?;
    Err(Refusal::not_found(
        "there is no such route; /openapi.json lists the routes of the API",
    ))
}
