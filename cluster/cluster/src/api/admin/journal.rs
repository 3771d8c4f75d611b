//! The journal over HTTP.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::request::{AdminRequest, done, reply};
use crate::journal::{RecordedRequest, Selection};
use crate::server::Server;
use crate::status::ApiError;
use crate::wire::reply::Reply;

/// Narrows a selection by the value of a parameter.
type Narrow = fn(Selection, &str) -> Selection;

const PARAMETERS: [(&str, Narrow); 6] = [
    ("verb", |selection, text| selection.verb(text)),
    ("resource", |selection, text| selection.resource(text)),
    ("subresource", |selection, text| selection.subresource(text)),
    ("namespace", |selection, text| selection.namespace(text)),
    ("name", |selection, text| selection.name(text)),
    ("client", |selection, text| selection.client(text)),
];

pub(super) fn answer(server: &Server, request: &AdminRequest) -> Result<Reply, ApiError> {
    match request.method {
        Method::GET => {
            let mut selection = server.journal.select();
            for (name, narrow) in PARAMETERS {
                if let Some(text) = request.query.text(name) {
                    selection = narrow(selection, text);
                }
            }
            let items: Vec<Value> = selection.requests().iter().map(form).collect();
            Ok(reply(StatusCode::OK, &json!({"items": items})))
        }
        Method::DELETE => {
            server.journal.clear();
            Ok(done())
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}

fn form(request: &RecordedRequest) -> Value {
    json!({
        "seconds": request.at.as_secs_f64(),
        "verb": request.verb,
        "group": request.group,
        "resource": request.resource,
        "subresource": request.subresource,
        "namespace": request.namespace,
        "name": request.name,
        "path": request.path,
        "query": request.query,
        "client": request.user_agent,
        "code": request.code.map(|code| code.as_u16()),
        "cutOff": request.cut_off,
        "faults": request.faults.len(),
    })
}
