//! Turns an answer into a response.

use std::sync::Arc;

use futures::{StreamExt, stream};
use http::StatusCode;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::schema;
use serde_json::{Value, json};

use super::watch::Lines;
use super::{list, object, scale};
use crate::printers::{Include, Table};
use crate::status::{self, ApiError};
use crate::verbs::{Answer, Call, Success, Watcher};
use crate::wire::body::ResponseBody;
use crate::wire::negotiate::{Encoding, ResponseFormat, Shape, WATCH_TYPES};
use crate::wire::protobuf;
use crate::wire::reply::Reply;
use crate::wire::verb::Verb;

/// Refuses a form in which the objects a call is about cannot be answered.
///
/// Source of the media types: `negotiateOutputMediaTypeStream` in `k8s.io/apiserver/pkg/endpoints/handlers`.
pub(in crate::api) fn check(
    format: ResponseFormat,
    call: &Call,
    verb: Verb,
) -> Result<(), ApiError> {
    if verb == Verb::Watch && format.encoding == Encoding::Yaml {
        // Go reads the options of a watch before it looks at the media type.
        call.query.list()?;
        return Err(ApiError::only_acceptable(WATCH_TYPES));
    }
    Ok(())
}

/// Refuses the shape of a list for an object, and of an object for a list.
///
/// A genuine server checks this when it writes the answer, so the request has taken effect.
pub(in crate::api) fn check_shape(
    format: ResponseFormat,
    call: &Call,
    answer: &Answer,
) -> Result<(), ApiError> {
    let answers_list = match answer {
        Answer::List(_) => true,
        Answer::Object { .. } | Answer::DryRunCreation(_) => false,
        Answer::Document { document, .. } if scale::is_scale(document) => false,
        // Events have objects of their own.
        Answer::Watch(_) if format.shape == Shape::Table => {
            return Include::of(&call.query).map(drop);
        }
        // A status is answered as it is.
        _ => return Ok(()),
    };
    let is_wrong = match format.shape {
        Shape::Metadata => answers_list,
        Shape::MetadataList => !answers_list,
        Shape::Whole | Shape::Table => false,
    };
    if format.shape == Shape::Table {
        Include::of(&call.query)?;
    }
    let is_unstructured = call.resource.rules.custom && matches!(answer, Answer::Object { .. });
    if is_wrong && is_unstructured {
        // Go's type of a custom resource is also one of lists, which is found to be none only when its items are read.
        return Err(ApiError::internal("content is not a list"));
    }
    if is_wrong {
        let go_type = match answer {
            Answer::Document { .. } => scale::go_type(&call.resource).to_owned(),
            _ => go_type(&call.resource, answers_list),
        };
        return Err(ApiError::wrong_shape(answers_list, &go_type));
    }
    Ok(())
}

/// Returns the type that Go has for a kind or for its lists.
fn go_type(resource: &Resource, is_list: bool) -> String {
    let list = if is_list { "List" } else { "" };
    if resource.rules.custom {
        return format!("*unstructured.Unstructured{list}");
    }
    let package = match resource.group.split('.').next().unwrap_or_default() {
        // Events of both groups have one internal type in Go.
        "" | "events" => "core",
        package => package,
    };
    format!("*{package}.{}{list}", resource.kind)
}

/// Writes the answers of one call in the shape its client asked for.
#[derive(Debug)]
pub(in crate::api) struct Renderer {
    pub(super) resource: Arc<Resource>,
    pub(super) format: ResponseFormat,
    /// Writes objects as rows instead.
    pub(super) table: Option<Table>,
}

impl Renderer {
    /// Returns the renderer for the answer of a call whose form was [checked](check).
    pub(in crate::api) fn new(call: &Call, format: ResponseFormat) -> Self {
        let Call {
            resource,
            query,
            server,
            ..
        } = call;
        let is_table = format.shape == Shape::Table;
        let include = Include::of(query).unwrap_or_default();
        Self {
            resource: Arc::clone(resource),
            format,
            table: is_table.then(|| Table::new(resource, format.meta, include, server.clock)),
        }
    }

    /// Writes an answer.
    pub(in crate::api) fn reply(self, answer: Answer) -> Reply {
        match answer {
            Answer::Object { stored, success } => object::reply(&self, code(success), &stored),
            Answer::DryRunCreation(object) => object::dry_run_creation(&self, object),
            Answer::Document { document, success }
                if self.format.shape != Shape::Whole && scale::is_scale(&document) =>
            {
                scale::reply(&self, code(success), &document)
            }
            Answer::Document { document, success } => {
                let document = schema::as_go_writes(document);
                Reply::json(code(success), Value::Object(document).to_string())
            }
            Answer::Deleted(stored) => {
                let (name, uid) = (stored.key().name(), stored.uid());
                Reply::json(StatusCode::OK, status::deleted(&self.resource, name, uid))
            }
            Answer::ActionDone => {
                let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                    "status": "Success", "code": 201});
                Reply::json(StatusCode::CREATED, status.to_string())
            }
            Answer::List(page) if self.format.encoding == Encoding::Protobuf => {
                list::protobuf(self, &page)
            }
            Answer::List(page) => Reply::pieces(ResponseBody::pieces(list::pieces(self, page))),
            Answer::Watch(watcher) => self.watch(watcher),
        }
    }

    fn watch(self, watcher: Box<Watcher>) -> Reply {
        let is_protobuf = self.format.encoding == Encoding::Protobuf;
        let mut lines = Lines::new(self);
        let events = stream::unfold(watcher, Watcher::next);
        let pieces = events.map(move |event| event.map(|event| lines.line(&event)));
        if is_protobuf {
            let frames = pieces.map(|line| line.map(|line| protobuf::write_event(&line)));
            return Reply::protobuf_stream(ResponseBody::stream(frames));
        }
        Reply::pieces(ResponseBody::stream(pieces))
    }

    /// Returns the type of an object of which only the metadata is shown, in JSON.
    pub(super) fn metadata_head(&self) -> String {
        let version = self.format.meta.api_version();
        format!(r#""kind":"PartialObjectMetadata","apiVersion":"{version}""#)
    }
}

fn code(success: Success) -> StatusCode {
    match success {
        Success::Done => StatusCode::OK,
        Success::Created => StatusCode::CREATED,
        Success::Accepted => StatusCode::ACCEPTED,
    }
}
