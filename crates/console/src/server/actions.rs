//! Performs the actions of users.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use http::header;
use lariat_cache::Metadata;
use lariat_controller::{Enqueue, SharedController, UnknownHandler};
use lariat_core::{ObjectKey, without_values};
use tokio::time;

use super::answer::{Answered, Shared, json};
use super::refusal::Refusal;
use super::state::ServerState;
use crate::access::{Permission, is_own_page};
use crate::api::{Action, Done, GuardRef, KindRef};
use crate::text::shown;
#[cfg(feature = "operator")]
use crate::view;

/// The maximum length of a body, in bytes.
const LONGEST: usize = 16 * 1024;
/// The time that a client has to send a body.
const SLOWEST: Duration = Duration::from_secs(10);

/// Performs an action, if the user may act and the program allows actions.
pub(super) async fn act(State(state): Shared, request: Request) -> Answered {
    let (parts, body) = request.into_parts();
    // On a loopback address no token is needed, so a page of another site could act through a user's browser.
    if !is_own_page(&parts.headers) {
        state.check(&parts)?;
        return Err(Refusal::forbidden(
            "pages of other origins may not perform actions",
        ));
    }
    let user = state.enter(&parts, Permission::Act).await?;
    if !state.actions {
        let message = "actions are disabled; `Console::actions(true)` enables them";
        return Err(Refusal::forbidden(message));
    }
    let action = read(&parts, body).await?;
    // After the body was read: a client that sends slowly must not occupy a place.
    let _place = state.place()?;
    let done = apply(&state, &action);
    // Whatever the result: the next overview must not be an older one.
    state.changed().await;
    // Both ends are logged with the user: actions change a running program.
    let user = user.name();
    match done {
        Ok(message) => {
            tracing::info!(user, "{} by the console", described(&action));
            json(&Done { message })
        }
        Err(refusal) => {
            // Without the request, which may contain any text.
            tracing::info!(user, "an action by the console was refused");
            Err(refusal)
        }
    }
}

/// Reads the body of a request.
async fn read(parts: &Parts, body: Body) -> Result<Action, Refusal> {
    let content_type = parts.headers.get(header::CONTENT_TYPE);
    let content_type = content_type
        .and_then(|it| it.to_str().ok())
        .unwrap_or_default();
    let media = content_type.split(';').next().unwrap_or_default().trim();
    // A page of another site can send this type only after a CORS preflight, which is not answered.
    if !media.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::media_type());
    }
    let body = time::timeout(SLOWEST, to_bytes(body, LONGEST)).await;
    let body: Bytes = match body {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return Err(Refusal::too_large(LONGEST)),
        Err(_) => return Err(Refusal::slow()),
    };
    serde_json::from_slice(&body).map_err(|error| {
        let error = without_values(&error.to_string());
        Refusal::bad_request(format!("the body is not an action: {}", shown(&error)))
    })
}

/// Performs an action; returns what was done, as a sentence.
fn apply(state: &ServerState, action: &Action) -> Result<String, Refusal> {
    match action {
        Action::Enqueue { kind, key, handler } => enqueue(state, kind, key, handler.as_deref()),
        Action::LogFilter { filter } => log_filter(state, filter),
        Action::ResetGuard { guard } => reset_guard(state, guard),
        Action::Pause { kind, handler } => pause(state, kind, handler),
        Action::Resume { kind, handler } => resume(state, kind, handler),
        Action::Relist { kind } => relist(state, kind),
    }
}

fn enqueue(
    state: &ServerState,
    kind: &KindRef,
    key: &str,
    handler: Option<&str>,
) -> Result<String, Refusal> {
    let controller = controller(state, kind)?;
    let key: ObjectKey = key.parse().map_err(|_| {
        Refusal::bad_request("the key must be NAMESPACE/NAME, or NAME for a cluster-scoped object")
    })?;
    // The text is one of the causes that the history of the key shows.
    let mut request = Enqueue::now().because("requested in the console");
    if let Some(handler) = handler {
        request = request.to(handler);
    }
    let enqueued = controller.enqueue_with(&key, &request);
    enqueued.map_err(|error| Refusal::not_found(error.to_string()))?;
    let gvk = controller.gvk();
    Ok(match handler {
        Some(handler) => format!("{gvk} {key} is enqueued for {handler}"),
        None => format!("{gvk} {key} is enqueued"),
    })
}

fn pause(state: &ServerState, kind: &KindRef, handler: &str) -> Result<String, Refusal> {
    let controller = controller(state, kind)?;
    let is_new = controller.pause(handler).map_err(|error| unknown(&error))?;
    let already = if is_new { "" } else { " already" };
    Ok(format!(
        "{handler} of {} is paused{already}",
        controller.gvk()
    ))
}

fn resume(state: &ServerState, kind: &KindRef, handler: &str) -> Result<String, Refusal> {
    let controller = controller(state, kind)?;
    let was_paused = controller
        .resume(handler)
        .map_err(|error| unknown(&error))?;
    let gvk = controller.gvk();
    if was_paused {
        Ok(format!("{handler} of {gvk} is resumed"))
    } else {
        Ok(format!("{handler} of {gvk} was not paused"))
    }
}

fn unknown(error: &UnknownHandler) -> Refusal {
    Refusal::not_found(error.to_string())
}

fn relist(state: &ServerState, kind: &KindRef) -> Result<String, Refusal> {
    let controller = controller(state, kind)?;
    let gvk = controller.gvk();
    if controller.relist() {
        return Ok(format!("all objects of {gvk} are listed again"));
    }
    Err(Refusal::conflict(format!(
        "the cache of {gvk} is not running"
    )))
}

fn controller(state: &ServerState, kind: &KindRef) -> Result<SharedController<Metadata>, Refusal> {
    let gvk = kind.gvk();
    let member = state.member(Some(&kind.context), &gvk)?;
    let controller = member.controller(&gvk);
    controller.ok_or_else(|| Refusal::no_controller(&gvk))
}

fn log_filter(state: &ServerState, filter: &str) -> Result<String, Refusal> {
    let Some(log_filter) = &state.log_filter else {
        let message = "the program has no changeable log filter; `Console::log_filter` sets one";
        return Err(Refusal::conflict(message));
    };
    // The new filter is not logged, since it may be any text.
    let set = log_filter.set_filter(filter);
    set.map_err(|error| Refusal::bad_request(format!("the filter is invalid: {}", shown(&error))))?;
    Ok(format!("the log filter is {}", log_filter.filter()))
}

#[cfg(feature = "operator")]
fn reset_guard(state: &ServerState, guard: &GuardRef) -> Result<String, Refusal> {
    if view::reset_guard(&state.members, guard) {
        return Ok(format!("the guard of {guard} is reset"));
    }
    Err(no_guard(guard))
}

#[cfg(not(feature = "operator"))]
fn reset_guard(_: &ServerState, guard: &GuardRef) -> Result<String, Refusal> {
    Err(no_guard(guard))
}

fn no_guard(guard: &GuardRef) -> Refusal {
    let guard = shown(&guard.to_string());
    Refusal::not_found(format!("there is no guard of {guard} with these budgets"))
}

/// Returns an action as text for the log, without line breaks.
fn described(action: &Action) -> String {
    match action {
        Action::Enqueue { kind, key, .. } => {
            format!("{} {} was enqueued", kind.gvk(), key.escape_debug())
        }
        Action::Pause { kind, handler } => format!("{handler} of {} was paused", kind.gvk()),
        Action::Resume { kind, handler } => format!("{handler} of {} was resumed", kind.gvk()),
        Action::Relist { kind } => format!("a list of {} was requested", kind.gvk()),
        Action::ResetGuard { guard } => {
            let guard = guard.to_string();
            format!("the guard of {} was reset", guard.escape_debug())
        }
        Action::LogFilter { .. } => "the log filter was changed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::response::IntoResponse;
    use futures::stream;
    use http::StatusCode;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_refused() {
        let request = Request::post("/api/v1/actions").header("content-type", "application/json");
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let began = Instant::now();
        let body = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let refused = read(&parts, body).await.err();
        assert_eq!(began.elapsed(), SLOWEST);
        let status = refused.map(|refusal| refusal.into_response().status());
        assert_eq!(status, Some(StatusCode::REQUEST_TIMEOUT));
    }
}
