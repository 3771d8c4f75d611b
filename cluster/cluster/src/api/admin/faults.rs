//! Rules over HTTP.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::request::{AdminRequest, done, reply};
use crate::faults::{Faults, RuleId, RuleJson};
use crate::server::Server;
use crate::status::ApiError;
use crate::wire::reply::Reply;

pub(super) fn answer(
    server: &Arc<Server>,
    request: &AdminRequest,
    rest: &[&str],
) -> Result<Reply, ApiError> {
    let faults = Faults {
        server: Arc::clone(server),
    };
    match (&request.method, rest) {
        (&Method::GET, []) => Ok(reply(StatusCode::OK, &json!({"items": list(server)}))),
        (&Method::POST, []) => {
            let rule: RuleJson = request.read()?;
            let id = faults.add(rule.into());
            Ok(reply(StatusCode::CREATED, &json!({"id": id.number()})))
        }
        (&Method::DELETE, []) => {
            faults.clear();
            Ok(done())
        }
        (&Method::DELETE, [id]) => {
            let id: Option<RuleId> = id.parse().ok();
            if id.is_some_and(|id| faults.remove(id)) {
                Ok(done())
            } else {
                Err(ApiError::page_not_found())
            }
        }
        (_, [] | [_]) => Err(ApiError::method_not_allowed()),
        _ => Err(ApiError::page_not_found()),
    }
}

fn list(server: &Server) -> Vec<Value> {
    let rules = server.faults.each();
    let form = rules.iter().map(|current| {
        json!({
            "id": current.id().number(),
            "hits": current.hits(),
            "legal": current.rule().action().is_legal(),
            "rule": RuleJson::from(current.rule()),
        })
    });
    form.collect()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Partition {
    client: String,
    #[serde(default)]
    silent: bool,
}

pub(super) fn partition(server: &Arc<Server>, request: &AdminRequest) -> Result<Reply, ApiError> {
    let wanted: Partition = request.read()?;
    let faults = Faults {
        server: Arc::clone(server),
    };
    let id = if wanted.silent {
        faults.blackhole(&wanted.client)
    } else {
        faults.partition(&wanted.client)
    };
    Ok(reply(StatusCode::CREATED, &json!({"id": id.number()})))
}
