//! Dispatches a request of the admin endpoint by its path.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::{Method, StatusCode};
use serde_json::json;

use super::request::{AdminRequest, done, reply, unsaved};
use super::{faults, journal, snapshots};
use crate::control::Control;
use crate::server::Server;
use crate::status::ApiError;
use crate::store::Ending;
use crate::wire::reply::Reply;

pub(crate) async fn answer(
    server: &Arc<Server>,
    request: &AdminRequest,
) -> Result<Reply, ApiError> {
    request.check_media_type()?;
    let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
    match path[..] {
        ["status"] => request.only(&Method::GET).map(|()| status(server)),
        ["faults", ref rest @ ..] => faults::answer(server, request, rest),
        ["partitions"] => request
            .only(&Method::POST)
            .and_then(|()| faults::partition(server, request)),
        ["journal"] => journal::answer(server, request),
        ["watches", how @ ("cut" | "end")] => {
            request.only(&Method::POST)?;
            let ending = match how {
                "cut" => Ending::Cut,
                _ => Ending::Clean,
            };
            server.store.end_watches(None, ending);
            Ok(done())
        }
        ["compact"] => {
            request.only(&Method::POST)?;
            server.store.compact();
            server
                .store
                .settled()
                .await
                .map_err(|error| unsaved(&error))?;
            Ok(done())
        }
        [
            "control",
            what @ ("garbage-collection" | "namespace-deletion"),
            how @ ("pause" | "resume"),
        ] => {
            request.only(&Method::POST)?;
            switch(server, what, how);
            Ok(done())
        }
        ["snapshots", ref rest @ ..] => snapshots::answer(server, request, rest).await,
        _ => Err(ApiError::page_not_found()),
    }
}

/// Stops or resumes a controller.
fn switch(server: &Arc<Server>, what: &str, how: &str) {
    let control = Control {
        server: Arc::clone(server),
    };
    match (what, how) {
        ("garbage-collection", "pause") => control.pause_garbage_collection(),
        ("garbage-collection", _) => control.resume_garbage_collection(),
        (_, "pause") => control.pause_namespace_deletion(),
        _ => control.resume_namespace_deletion(),
    }
}

fn status(server: &Server) -> Reply {
    let objects: serde_json::Map<_, _> = server
        .store
        .count_by_resource()
        .iter()
        .map(|(name, count)| (name.to_string(), json!(count)))
        .collect();
    let status = json!({
        "resourceVersion": server.store.revision().to_string(),
        "objects": objects,
        "watches": server.store.watches(),
        "cutOff": server.cut_off.load(Ordering::Relaxed),
        "faults": server.faults.each().len(),
        "requests": server.journal.select().count(),
    });
    reply(StatusCode::OK, &status)
}
