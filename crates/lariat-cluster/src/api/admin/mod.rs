//! The admin endpoint: faults, journal, watches and snapshots over HTTP.
//!
//! It is ours and not of Kubernetes, so it lies under a prefix of its own, and it is there only if the
//! [builder](crate::ClusterBuilder::admin) says so.
//!
#![doc = include_str!("admin.md")]

mod faults;
mod journal;
mod snapshots;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::control::Control;
use crate::server::Server;
use crate::status::ApiError;
use crate::store::{Ending, Unsaved};
use crate::wire::query::Query;
use crate::wire::reply::Reply;

/// A request to the endpoint.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    /// The path behind the prefix.
    pub(crate) path: Vec<String>,
    pub(crate) query: Query,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

pub(crate) async fn answer(server: &Arc<Server>, asked: &Asked) -> Result<Reply, ApiError> {
    asked.check_media_type()?;
    let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
    match path[..] {
        ["status"] => asked.only(&Method::GET).map(|()| status(server)),
        ["faults", ref rest @ ..] => faults::answer(server, asked, rest),
        ["partitions"] => asked
            .only(&Method::POST)
            .and_then(|()| faults::partition(server, asked)),
        ["journal"] => journal::answer(server, asked),
        ["watches", how @ ("cut" | "end")] => {
            asked.only(&Method::POST)?;
            let ending = match how {
                "cut" => Ending::Cut,
                _ => Ending::Clean,
            };
            server.store.end_watches(None, ending);
            Ok(done())
        }
        ["compact"] => {
            asked.only(&Method::POST)?;
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
            asked.only(&Method::POST)?;
            switch(server, what, how);
            Ok(done())
        }
        ["snapshots", ref rest @ ..] => snapshots::answer(server, asked, rest).await,
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
    let objects = server.store.census();
    let objects: serde_json::Map<_, _> = objects
        .iter()
        .map(|(name, count)| (name.to_string(), json!(count)))
        .collect();
    let status = json!({
        "resourceVersion": server.store.revision().to_string(),
        "objects": objects,
        "watches": server.store.watches(),
        "faults": server.faults.each().len(),
        "requests": server.journal.select().count(),
    });
    reply(StatusCode::OK, &status)
}

impl Asked {
    /// Refuses every method but one.
    fn only(&self, method: &Method) -> Result<(), ApiError> {
        match self.method == *method {
            true => Ok(()),
            false => Err(ApiError::method_not_allowed()),
        }
    }

    /// Refuses a change whose body is not JSON by its own account: the types a web page may send without asking are not.
    fn check_media_type(&self) -> Result<(), ApiError> {
        let media = self.content_type.split(';').next().unwrap_or_default();
        let is_json = media.trim().eq_ignore_ascii_case("application/json");
        let has_none = self.content_type.is_empty() && self.body.is_empty();
        if is_json || has_none || self.method == Method::GET {
            Ok(())
        } else {
            Err(ApiError::unsupported_media_type("application/json"))
        }
    }

    /// Reads the body; the error names the member that is wrong.
    fn read<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        let mut json = serde_json::Deserializer::from_slice(&self.body);
        let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let (path, why) = (error.path().to_string(), error.inner());
            match path.as_str() {
                "." => ApiError::bad_request(why.to_string()),
                path => ApiError::bad_request(format!("{path}: {why}")),
            }
        })?;
        let end = json.end();
        end.map_err(|error| ApiError::bad_request(error.to_string()))?;
        Ok(read)
    }
}

fn reply(code: StatusCode, document: &impl Serialize) -> Reply {
    let json = serde_json::to_vec(document).expect("what is answered here is JSON");
    Reply::json(code, json)
}

fn done() -> Reply {
    reply(StatusCode::OK, &json!({}))
}

fn unsaved(error: &Unsaved) -> ApiError {
    ApiError::internal(error.to_string())
}
