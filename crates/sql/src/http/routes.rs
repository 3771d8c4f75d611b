//! The routes of the service and their handlers.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::future::join_all;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use lariat_core::ObjectKey;
use serde_json::{Value as Json, json};

use super::body::{self, ObjectsBody, Permits};
use super::etag::{self, Question};
use super::events::{self, Terms};
use super::page;
use super::respond::{JSON, about, fixed, json_response, not_modified, with_tag};
use super::shared::{ServiceState, path_of};
use super::status::Refusal;
use super::target::{self, Target};
use crate::access::User;
use crate::cache::{FoundObject, SqlKind};
use crate::field::{Field, Path as FieldPath};
use crate::query::{Operator, Part, Query, field};
use crate::revision::{Revision, RevisionError};
use crate::schema::{NAME, NAMESPACE};

type Answered = Result<Response, Refusal>;
type Of<T> = Result<Path<T>, PathRejection>;

/// The largest number of values of a summary.
const COUNTS: usize = 10_000;

const EVENT_STREAM: &str = "text/event-stream";
/// The segments of the path of a kind: group, version and kind.
type Kind = (String, String, String);

/// Returns the router of all routes.
pub(super) fn router(shared: Arc<ServiceState>) -> Router {
    Router::new()
        .route("/", get(show_page))
        .route("/openapi.json", get(describe))
        .route("/v1/kinds", get(kinds))
        .route("/v1/{group}/{version}/{kind}", get(list))
        .route("/v1/{group}/{version}/{kind}/{name}", get(cluster_object))
        .route(
            "/v1/{group}/{version}/{kind}/{namespace}/{name}",
            get(namespaced_object),
        )
        .method_not_allowed_fallback(other_method)
        .fallback(not_found)
        .with_state(shared)
}

async fn show_page(State(shared): State<Arc<ServiceState>>, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    shared.check(&parts)?;
    let page = page::page();
    let mut response = fixed(&parts.headers, "text/html; charset=utf-8", &page.html);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, page.policy.clone());
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    Ok(response)
}

async fn describe(State(shared): State<Arc<ServiceState>>, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    shared.enter(&parts).await?;
    target::of_none(parts.uri.query().unwrap_or_default())?;
    Ok(fixed(&parts.headers, JSON, &shared.openapi))
}

async fn kinds(State(shared): State<Arc<ServiceState>>, request: Request) -> Answered {
    let (parts, _) = request.into_parts();
    let user = shared.enter(&parts).await?;
    target::of_none(parts.uri.query().unwrap_or_default())?;
    let _place = shared.requests.take(&user)?;
    let each = shared
        .kinds
        .values()
        .map(|kind| async { description(kind, shared.sees_all(&user, kind).await) });
    let kinds: Vec<Json> = join_all(each).await;
    let answer = json!({"kinds": kinds, "isOpen": shared.auth.is_open()});
    Ok(json_response(Body::from(answer.to_string())))
}

/// Describes a kind: its fields and its state.
///
/// Counts cover all objects, so only users who may see all of them get the counts.
fn description(kind: &SqlKind, has_figures: bool) -> Json {
    let (status, gvk) = (kind.status(), kind.schema().gvk());
    let state = match (&status.last_error, status.is_synced) {
        // The error may contain file names, so it is only logged.
        (Some(_), _) => "failing",
        (None, true) => "ready",
        (None, false) => "filling",
    };
    let fields: Vec<Json> = kind.schema().fields().iter().map(field_of).collect();
    let associations: Vec<Json> = kind
        .schema()
        .associations()
        .iter()
        .map(|it| json!({"name": it.name(), "kind": it.kind().to_string()}))
        .collect();
    let mut description = json!({
        "group": gvk.group(), "version": gvk.version(), "kind": gvk.kind(),
        "path": format!("v1/{}", path_of(gvk)), "fields": fields, "state": state,
        "skippedColumns": status.skipped_columns, "associations": associations,
    });
    if has_figures {
        description["revision"] = status.revision.to_string().into();
        description["unwritten"] = status.unwritten.into();
        let lag = u64::try_from(status.lag.as_millis()).unwrap_or(u64::MAX);
        description["lagMilliseconds"] = lag.into();
        description["unindexable"] = json!(status.unindexable);
        description["withoutContent"] = status.without_content.into();
        description["leftOut"] = status.left_out.into();
        description["oldDataKeys"] = status.old_data_keys.into();
        description["oldRows"] = status.old_rows.into();
    }
    description
}

fn field_of(field: &Field) -> Json {
    let of = format!("{:?}", field.field_type()).to_lowercase();
    json!({
        "name": field.name(), "type": of, "isMany": field.is_many(), "isSearchable": field.is_searchable(),
        "steps": field.source_path().map(FieldPath::steps),
    })
}

async fn list(
    State(shared): State<Arc<ServiceState>>,
    path: Of<Kind>,
    request: Request,
) -> Answered {
    let (parts, _) = request.into_parts();
    let user = shared.enter(&parts).await?;
    let Path((group, version, kind)) = path.map_err(|error| bad_path(&error))?;
    let path = format!("{group}/{version}/{kind}");
    let target = Target::read(&parameters(&shared, &parts), shared.pages)?;
    if target.is_watch {
        return watch(&shared, &user, &path, target.query, &parts).await;
    }
    // Before reviews and queries, which are what the limit protects.
    let request = shared.requests.take(&user)?;
    let query = shared
        .without_label(&user, target.query)
        .await?
        .most_counts(COUNTS);
    let view = shared.view_for(&user, &path, &query).await?;
    let shown = shared.revisions.shown(view.access());
    // A tag would show changes of hidden objects. And a client that keeps an answer would keep its revision and cursor,
    // which are encrypted with keys that go.
    let has_tag = !shown.is_restricted() && !view.is_sealed();
    let question = Question::new(&query, view.access()).filter(|_| has_tag);
    let tag_at = |revision| question.and_then(|question| question.tag(revision));
    let now = view.revision();
    let is_there = query.at_least.unwrap_or_default().version() <= now.version();
    if let Some(tag) = tag_at(now).filter(|_| is_there)
        && etag::is_known(&parts.headers, &tag)
    {
        return Ok(about(&view, not_modified(tag)));
    }
    let bytes = shared.bytes.answer(&user);
    let turn = shared.turns.of(&user).await?;
    let mut answer = view.query(&query, &bytes).await?;
    drop(turn);
    let is_first = matches!(query.part, Part::After { cursor: None, .. });
    // Everything fits on this page, so the total is known without a count.
    if is_first && answer.next.is_none() {
        answer.total = u64::try_from(answer.objects.len()).ok();
    }
    let tag = tag_at(answer.revision);
    let revision = shown.text(answer.revision, highest_version(&answer.objects));
    let head = body::head(view.kind(), &query, &revision, &answer);
    let body = ObjectsBody::list(head, answer.objects, Permits { request, bytes });
    Ok(about(&view, with_tag(json_response(Body::new(body)), tag)))
}

/// Returns the parameters of a request, with revisions that can be read.
fn parameters(shared: &ServiceState, parts: &Parts) -> String {
    let parameters = parts.uri.query().unwrap_or_default();
    shared.revisions.in_parameters(parameters)
}

/// Returns the highest resource version of some objects.
fn highest_version(objects: &[FoundObject]) -> u64 {
    let versions = objects.iter().map(|found| found.version.parse());
    versions.flatten().max().unwrap_or_default()
}

async fn watch(
    shared: &Arc<ServiceState>,
    user: &User,
    path: &str,
    query: Query,
    parts: &Parts,
) -> Answered {
    if !accepts_events(&parts.headers) {
        return Err(Refusal::not_acceptable(format!(
            "a watch is sent as {EVENT_STREAM}: accept that, or leave the parameter watch out"
        )));
    }
    let place = shared.watches.take(user)?;
    let query = shared.without_label(user, query).await?;
    let view = shared.view(user, path, &query).await?;
    let since = match last_event_id(shared, &parts.headers)? {
        Some(revision) => revision,
        None => match query.at_least {
            Some(revision) => revision,
            // Objects of the initial list are not sent as changes.
            None => {
                let synced = Query::new().limit(1);
                view.query(&synced, &shared.bytes.answer(user))
                    .await?
                    .revision
            }
        },
    };
    let watch = view.watch(&query, since)?;
    let terms = Terms {
        heartbeat: shared.heartbeat,
        longest: shared.longest_watch,
        stopping: shared.stopping.clone(),
        shown: shared.revisions.shown(view.access()),
        place,
    };
    let mut response = Response::new(events::body(watch, terms));
    let headers = response.headers_mut();
    let fixed = HeaderValue::from_static;
    headers.insert(header::CONTENT_TYPE, fixed(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, fixed("no-store"));
    // Proxies that buffer responses would delay events.
    headers.insert("x-accel-buffering", fixed("no"));
    Ok(response)
}

/// Reads the revision from which a disconnected client resumes.
fn last_event_id(shared: &ServiceState, headers: &HeaderMap) -> Result<Option<Revision>, Refusal> {
    let Some(id) = headers.get("last-event-id").filter(|id| !id.is_empty()) else {
        return Ok(None);
    };
    let id = shared.revisions.plain(id.to_str().unwrap_or_default());
    let revision = id.parse().map_err(|error: RevisionError| {
        Refusal::parameter(
            "Last-Event-ID",
            format!("the header Last-Event-ID: {error}"),
        )
    });
    revision.map(Some)
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let values = values.filter_map(|value| value.to_str().ok());
    let mut kinds = values.flat_map(|value| value.split(','));
    kinds.any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        ["*/*", "text/*", EVENT_STREAM].contains(&kind.to_ascii_lowercase().as_str())
    })
}

async fn cluster_object(
    State(shared): State<Arc<ServiceState>>,
    path: Of<(String, String, String, String)>,
    request: Request,
) -> Answered {
    let (parts, _) = request.into_parts();
    let user = shared.enter(&parts).await?;
    let Path((group, version, kind, name)) = path.map_err(|error| bad_path(&error))?;
    let (path, key) = (
        format!("{group}/{version}/{kind}"),
        ObjectKey::cluster(&name),
    );
    object(&shared, &user, &path, key, &parts).await
}

async fn namespaced_object(
    State(shared): State<Arc<ServiceState>>,
    path: Of<(String, String, String, String, String)>,
    request: Request,
) -> Answered {
    let (parts, _) = request.into_parts();
    let user = shared.enter(&parts).await?;
    let Path((group, version, kind, namespace, name)) = path.map_err(|error| bad_path(&error))?;
    let path = format!("{group}/{version}/{kind}");
    let key = ObjectKey::namespaced(&namespace, &name);
    object(&shared, &user, &path, key, &parts).await
}

async fn object(
    shared: &Arc<ServiceState>,
    user: &User,
    path: &str,
    key: ObjectKey,
    parts: &Parts,
) -> Answered {
    let revision = target::of_object(&parameters(shared, parts))?;
    let request = shared.requests.take(user)?;
    let mut asked = Query::new().at_least(revision.unwrap_or_default());
    if let Some(namespace) = key.namespace() {
        asked = asked.namespaces([namespace]);
    }
    let view = shared.view(user, path, &asked).await?;
    let gvk = view.kind();
    // A user who may not see the object must not learn whether it exists.
    if !view.access().allows(&key) {
        let name = user.name();
        return Err(Refusal::forbidden(format!(
            "user {name:?} may not see {gvk} {key}"
        )));
    }
    let of_namespace = match key.namespace() {
        Some(namespace) => field(NAMESPACE).equals(namespace),
        None => field(NAMESPACE).is(Operator::Missing, [""; 0]),
    };
    let query = Query::new()
        .filter(field(NAME).equals(key.name()))
        .filter(of_namespace)
        .at_least(revision.unwrap_or_default());
    let bytes = shared.bytes.answer(user);
    let turn = shared.turns.of(user).await?;
    let found = view.find(query, &key, &bytes).await?;
    drop(turn);
    let Some(found) = found else {
        return Err(Refusal::not_found(format!("there is no {gvk} {key}")));
    };
    let tag = HeaderValue::try_from(format!("W/\"{}\"", found.version)).ok();
    if let Some(tag) = tag
        .as_ref()
        .filter(|tag| etag::is_known(&parts.headers, tag))
    {
        return Ok(about(&view, not_modified(tag.clone())));
    }
    let body = ObjectsBody::object(found, Permits { request, bytes });
    Ok(about(&view, with_tag(json_response(Body::new(body)), tag)))
}

fn bad_path(error: &PathRejection) -> Refusal {
    Refusal::bad_request(format!("the path cannot be read: {}", error.body_text()))
}

async fn other_method(request: Request) -> Answered {
    if request.method() != Method::OPTIONS {
        return Err(Refusal::method());
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let allowed = HeaderValue::from_static("GET, HEAD, OPTIONS");
    response.headers_mut().insert(header::ALLOW, allowed);
    Ok(response)
}

async fn not_found() -> Refusal {
    Refusal::not_found(
        "nothing is served here; there are /, /openapi.json, /v1/kinds, /v1/{group}/{version}/{kind}, and below that \
         /{namespace}/{name}, or /{name} without a namespace",
    )
}
