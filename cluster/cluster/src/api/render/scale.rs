//! Answers that are scales, in other shapes than their own.

use http::StatusCode;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_text};

use super::renderer::Renderer;
use crate::store::{Draft, EventType};
use crate::wire::reply::Reply;

pub(super) fn is_scale(document: &Object) -> bool {
    document.get("kind").is_some_and(|kind| kind == "Scale")
}

/// Returns the type that Go has for the scale of a kind.
pub(super) fn go_type(resource: &Resource) -> &'static str {
    if resource.rules.custom {
        "*v1.Scale"
    } else {
        "*autoscaling.Scale"
    }
}

/// Writes a scale as a table, or its metadata.
pub(super) fn reply(renderer: &Renderer, code: StatusCode, scale: &Object) -> Reply {
    let revision = metadata_text(scale, "resourceVersion").parse();
    let stored = Draft::new(scale).stamp(revision.unwrap_or_default(), EventType::Modified);
    match &renderer.table {
        Some(table) => Reply::json(code, table.of_scale().single(&stored, true)),
        None => {
            let head = renderer.metadata_head();
            Reply::json_of(code, &[b"{", head.as_bytes(), stored.metadata(), b"}"])
        }
    }
}
