//! The routes of the JSON API.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::request::Parts;
use axum::routing::{get, post};
use http::HeaderValue;
use lariat_core::Gvk;

use super::actions;
use super::answer::{Answered, Shared, json, typed};
use super::events;
use super::refusal::Refusal;
use super::state::ServerState;
use crate::access::Permission;
use crate::api::{key_of, kind_of};
use crate::members::Member;
use crate::view;

pub(super) const ACTIONS: &str = "/api/v1/actions";
const OPENAPI: &str = include_str!("../api/openapi.json");

type Of<T> = Result<Path<T>, PathRejection>;

pub(super) fn router() -> Router<Arc<ServerState>> {
    Router::new()
        .route("/openapi.json", get(openapi))
        .route("/api/v1/overview", get(overview))
        .route("/api/v1/controllers/{kind}", get(controller))
        .route("/api/v1/controllers/{kind}/keys/{key}", get(key))
        .route("/api/v1/names", get(names))
        .route("/api/v1/plan", get(plan))
        .route("/api/v1/health", get(health))
        .route(ACTIONS, post(actions::act))
}

async fn openapi(State(state): Shared, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    state.enter(&parts, Permission::Look).await?;
    Ok(typed("application/json", OPENAPI))
}

async fn overview(State(state): Shared, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    let user = state.enter(&parts, Permission::Look).await?;
    let is_watch = match parameter(&parts, "watch").as_deref() {
        None | Some("false" | "0") => false,
        Some("" | "true" | "1") => true,
        Some(_) => {
            return Err(Refusal::bad_request(
                "the parameter watch must be true or false",
            ));
        }
    };
    if !is_watch {
        // After the authorisation, so that strangers cannot use up the places.
        let _place = state.place()?;
        return json(&state.overview(&user).await);
    }
    // Streams have a limit of their own, so that they do not use up the places of requests.
    let place = state.stream()?;
    let mut response = typed("text/event-stream", events::body(state, user, place));
    // For proxies that buffer responses, such as nginx: events would be delayed.
    let no = HeaderValue::from_static("no");
    response.headers_mut().insert("x-accel-buffering", no);
    Ok(response)
}

async fn controller(State(state): Shared, path: Of<String>, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    state.enter(&parts, Permission::Look).await?;
    let _place = state.place()?;
    let Path(kind) = path.map_err(|error| bad_path(&error))?;
    let (member, gvk) = find(&state, &parts, &kind)?;
    let detail = view::controller(&member, &gvk, &state.samples);
    json(&detail.ok_or_else(|| Refusal::no_controller(&gvk))?)
}

async fn key(State(state): Shared, path: Of<(String, String)>, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    state.enter(&parts, Permission::Look).await?;
    let _place = state.place()?;
    let Path((kind, key)) = path.map_err(|error| bad_path(&error))?;
    let (member, gvk) = find(&state, &parts, &kind)?;
    let key = key_of(&key).ok_or_else(|| {
        Refusal::bad_request("the key must be NAMESPACE~NAME, or ~NAME for a cluster-scoped object")
    })?;
    let detail = view::key(&member, &gvk, &key).ok_or_else(|| Refusal::no_controller(&gvk))?;
    // Any name is a valid key, so a key of which nothing is known is taken for a mistake.
    let is_known = detail.resource_version.is_some()
        || detail.queued.is_some()
        || detail.in_progress.is_some()
        || !detail.runs.is_empty();
    if is_known {
        return json(&detail);
    }
    let hint = view::namesakes(&member, &gvk, &key);
    let message =
        format!("{gvk} {key} is neither cached nor queued, and has no runs in the history{hint}");
    Err(Refusal::not_found(message))
}

async fn names(State(state): Shared, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    state.enter(&parts, Permission::Look).await?;
    let _place = state.place()?;
    json(&view::names(&state.members).await)
}

async fn plan(State(state): Shared, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    state.enter(&parts, Permission::Look).await?;
    let _place = state.place()?;
    json(&view::plan(&state.members))
}

async fn health(State(state): Shared, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    state.enter(&parts, Permission::Look).await?;
    let _place = state.place()?;
    json(&state.checkup.health().await)
}

/// Returns the factory and the kind that a path is about.
fn find(state: &ServerState, parts: &Parts, segment: &str) -> Result<(Member, Gvk), Refusal> {
    let gvk = kind_of(segment).ok_or_else(|| {
        Refusal::bad_request("the kind must be GROUP~VERSION~KIND, with core for the core group")
    })?;
    let context = parameter(parts, "context");
    let member = state.member(context.as_deref(), &gvk)?;
    Ok((member, gvk))
}

fn parameter<'a>(parts: &'a Parts, name: &str) -> Option<Cow<'a, str>> {
    let query = parts.uri.query().unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(each, _)| each == name).map(|(_, value)| value)
}

fn bad_path(_: &PathRejection) -> Refusal {
    Refusal::bad_request("the path is not UTF-8")
}
