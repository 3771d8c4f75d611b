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
use tokio::sync::SemaphorePermit;

use super::actions;
use super::events;
use super::refusal::Refusal;
use super::routes::{Answered, Shared, json, typed};
use super::state::{REQUESTS, STREAMS, ServerState};
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
                "the parameter watch takes true or false",
            ));
        }
    };
    if !is_watch {
        let _place = place(&state)?;
        return json(&state.overview(&user).await);
    }
    let place = Arc::clone(&state.streams).try_acquire_owned();
    let place = place.map_err(|_| Refusal::busy("streams", STREAMS))?;
    let mut response = typed("text/event-stream", events::body(state, user, place));
    // Proxies that buffer responses would delay events.
    let no = HeaderValue::from_static("no");
    response.headers_mut().insert("x-accel-buffering", no);
    Ok(response)
}

async fn controller(State(state): Shared, path: Of<String>, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    state.enter(&parts, Permission::Look).await?;
    let _place = place(&state)?;
    let Path(kind) = path.map_err(|error| bad_path(&error))?;
    let (member, gvk) = find(&state, &parts, &kind)?;
    let detail = view::controller(&member, &gvk, &state.samples);
    json(&detail.ok_or_else(|| no_controller(&gvk))?)
}

async fn key(State(state): Shared, path: Of<(String, String)>, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    state.enter(&parts, Permission::Look).await?;
    let _place = place(&state)?;
    let Path((kind, key)) = path.map_err(|error| bad_path(&error))?;
    let (member, gvk) = find(&state, &parts, &kind)?;
    let key = key_of(&key).ok_or_else(|| {
        Refusal::bad_request(
            "the key is NAMESPACE~NAME, or ~NAME for an object without a namespace",
        )
    })?;
    let detail = view::key(&member, &gvk, &key).ok_or_else(|| no_controller(&gvk))?;
    let is_known = detail.resource_version.is_some()
        || detail.queued.is_some()
        || detail.in_progress.is_some()
        || !detail.runs.is_empty();
    if is_known {
        return json(&detail);
    }
    let message = format!("{gvk} {key} is not cached, not queued, and none of its runs is kept");
    Err(Refusal::not_found(message))
}

async fn plan(State(state): Shared, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    state.enter(&parts, Permission::Look).await?;
    let _place = place(&state)?;
    json(&view::plan(&state.members))
}

async fn health(State(state): Shared, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    state.enter(&parts, Permission::Look).await?;
    let _place = place(&state)?;
    json(&state.checkup.health().await)
}

/// Takes a place among the requests that are answered.
pub(super) fn place(state: &ServerState) -> Result<SemaphorePermit<'_>, Refusal> {
    let place = state.requests.try_acquire();
    place.map_err(|_| Refusal::busy("requests", REQUESTS))
}

fn find(state: &ServerState, parts: &Parts, segment: &str) -> Result<(Member, Gvk), Refusal> {
    let gvk = kind_of(segment).ok_or_else(|| {
        Refusal::bad_request("the kind is GROUP~VERSION~KIND, with core for the core group")
    })?;
    let context = parameter(parts, "context");
    let member = member(state, context.as_deref(), &gvk)?;
    Ok((member, gvk))
}

/// Returns the factory of a context, or else the first that has a controller of a kind.
pub(super) fn member(
    state: &ServerState,
    context: Option<&str>,
    gvk: &Gvk,
) -> Result<Member, Refusal> {
    let mut factories = state.members.factories().into_iter();
    let has_kind = |member: &Member| {
        let statuses = member.factory.status();
        statuses.iter().any(|status| status.cache.gvk == *gvk)
    };
    let found = factories.find(|member| {
        context.is_none_or(|context| *member.context == *context) && has_kind(member)
    });
    found.ok_or_else(|| no_controller(gvk))
}

fn no_controller(gvk: &Gvk) -> Refusal {
    Refusal::not_found(format!("there is no controller of {gvk}"))
}

fn parameter<'a>(parts: &'a Parts, name: &str) -> Option<Cow<'a, str>> {
    let query = parts.uri.query().unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(each, _)| each == name).map(|(_, value)| value)
}

fn bad_path(_: &PathRejection) -> Refusal {
    Refusal::bad_request("the path is not UTF-8")
}
