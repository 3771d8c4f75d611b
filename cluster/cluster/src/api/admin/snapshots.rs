//! Snapshots over HTTP.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::request::{AdminRequest, done, reply, unsaved};
use crate::server::Server;
use crate::status::ApiError;
use crate::store::Snapshot;
use crate::wire::reply::Reply;

pub(super) async fn answer(
    server: &Server,
    request: &AdminRequest,
    rest: &[&str],
) -> Result<Reply, ApiError> {
    match (&request.method, rest) {
        (&Method::GET, []) => {
            let snapshots = server.snapshots.lock();
            let items: Vec<Value> = snapshots
                .iter()
                .map(|(name, snapshot)| form(name, snapshot))
                .collect();
            Ok(reply(StatusCode::OK, &json!({"items": items})))
        }
        (&Method::POST, [name]) => {
            let snapshot = server.store.snapshot();
            let answer = form(name, &snapshot);
            let name = (*name).to_owned();
            server.snapshots.lock().insert(name, snapshot);
            Ok(reply(StatusCode::CREATED, &answer))
        }
        (&Method::GET, [name]) => {
            let snapshot = find(server, name)?;
            Ok(reply(StatusCode::OK, &form(name, &snapshot)))
        }
        (&Method::DELETE, [name]) => {
            find(server, name)?;
            server.snapshots.lock().remove(*name);
            Ok(done())
        }
        (&Method::POST, [name, how @ ("restore" | "rewind")]) => {
            let snapshot = find(server, name)?;
            match *how {
                "restore" => server.store.restore(&snapshot),
                _ => server.store.rewind_to(&snapshot),
            }
            server.vary_names();
            server.reconciled().await.map_err(|error| unsaved(&error))?;
            Ok(reply(StatusCode::OK, &form(name, &snapshot)))
        }
        (_, [] | [_] | [_, "restore" | "rewind"]) => Err(ApiError::method_not_allowed()),
        _ => Err(ApiError::page_not_found()),
    }
}

fn find(server: &Server, name: &str) -> Result<Snapshot, ApiError> {
    let snapshot = server.snapshots.lock().get(name).cloned();
    snapshot.ok_or_else(ApiError::page_not_found)
}

fn form(name: &str, snapshot: &Snapshot) -> Value {
    json!({
        "name": name,
        "resourceVersion": snapshot.resource_version(),
        "objects": snapshot.objects(),
    })
}
