//! Answers about one object.

use http::StatusCode;
use lariat_apimachinery::object::Object;

use super::renderer::Renderer;
use crate::store::{Draft, EventType, Stored};
use crate::strategy::view;
use crate::wire::negotiate::Shape;
use crate::wire::reply::Reply;

/// Writes a state, in the version and the shape the client asked for.
pub(super) fn reply(renderer: &Renderer, code: StatusCode, stored: &Stored) -> Reply {
    let reread = view::reread(&renderer.resource, stored);
    let shown = reread.as_ref().unwrap_or(stored);
    if let Some(table) = &renderer.table {
        return Reply::json(code, table.single(shown, true));
    }
    if renderer.format.shape == Shape::Whole {
        let head = renderer.resource.head();
        return Reply::json_of(code, &[b"{", head.as_bytes(), shown.content()]);
    }
    let head = renderer.metadata_head();
    Reply::json_of(code, &[b"{", head.as_bytes(), shown.metadata(), b"}"])
}

/// Writes an object that gets no version, because it is not stored.
pub(super) fn dry_run_creation(renderer: &Renderer, mut object: Object) -> Reply {
    let code = StatusCode::CREATED;
    match renderer.format.shape {
        Shape::Whole => {}
        Shape::Table => {
            let stored = Draft::new(&object).stamp(0, EventType::Added);
            return reply(renderer, code, &stored);
        }
        Shape::Metadata | Shape::MetadataList => {
            object.retain(|member, _| member == "metadata");
            object.insert("kind".into(), "PartialObjectMetadata".into());
            object.insert("apiVersion".into(), "meta.k8s.io/v1".into());
        }
    }
    let document = serde_json::to_vec(&object).expect("an object is JSON");
    Reply::json(code, document)
}
