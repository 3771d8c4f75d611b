//! Faults that are switched on and off.

use axum::extract::{Path, State};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use lariat_cluster::faults::{Faults, Rule, RuleId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::reply::{Refusal, reply};

type Answer = Result<Response, Refusal>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Isolation {
    /// How the `User-Agent` of the client begins; empty for every client.
    client: String,
    /// Its connections stay open, and nothing comes through.
    #[serde(default)]
    silent: bool,
}

pub(super) async fn add(State(faults): State<Faults>, headers: HeaderMap, body: Bytes) -> Answer {
    let rule: Rule = read(&headers, &body)?;
    Ok(added(&faults, faults.add(rule)))
}

pub(super) async fn isolate(
    State(faults): State<Faults>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let Isolation { client, silent } = read(&headers, &body)?;
    let id = if silent {
        faults.blackhole(&client)
    } else {
        faults.partition(&client)
    };
    Ok(added(&faults, id))
}

pub(super) async fn remove(State(faults): State<Faults>, Path(id): Path<String>) -> Answer {
    // What is no id is no fault either, so both are answered 404.
    let id: Option<RuleId> = id.parse().ok();
    if id.is_some_and(|id| faults.remove(id)) {
        Ok(done("The fault is removed."))
    } else {
        let message = "there is no such fault; it may have been removed already";
        Err(Refusal::new(StatusCode::NOT_FOUND, message))
    }
}

pub(super) async fn clear(State(faults): State<Faults>) -> Response {
    faults.clear();
    done("All faults are removed.")
}

pub(super) async fn cut_watches(State(faults): State<Faults>) -> Response {
    faults.cut_watches();
    done("All open watches were cut off.")
}

pub(super) async fn end_watches(State(faults): State<Faults>) -> Response {
    faults.end_watches();
    done("All open watches were ended.")
}

pub(super) async fn expire_history(State(faults): State<Faults>) -> Response {
    faults.expire_history();
    done("The history is gone: watches from earlier versions are answered 410.")
}

fn added(faults: &Faults, id: RuleId) -> Response {
    let rules = faults.rules();
    let text = rules.iter().find(|rule| rule.id() == id);
    let message = text.map(|rule| format!("Switched on: {rule}."));
    let added = json!({"id": id.to_string(), "message": message.unwrap_or_default()});
    reply(StatusCode::CREATED, &added)
}

fn done(message: &str) -> Response {
    reply(StatusCode::OK, &json!({"message": message}))
}

/// Reads a body; the error names the member that is wrong.
fn read<T: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> Result<T, Refusal> {
    let media = headers.get(header::CONTENT_TYPE);
    let media = media
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default();
    // The types that a page may send to another site without asking are not JSON.
    if !media.trim().eq_ignore_ascii_case("application/json") {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body has to be JSON, with the content type application/json",
        ));
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (path, why) = (error.path().to_string(), error.inner());
        let place = if path == "." {
            String::new()
        } else {
            format!("{path}: ")
        };
        Refusal::new(StatusCode::BAD_REQUEST, format!("{place}{why}"))
    })?;
    // The deserializer stops after the first value, and would ignore what follows.
    let end = json.end();
    end.map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.to_string()))?;
    Ok(read)
}
