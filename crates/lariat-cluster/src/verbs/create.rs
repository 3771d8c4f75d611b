//! POST to a collection.

use http::StatusCode;
use lariat_apimachinery::object::Object;

use super::creation::{Created, Creation};
use super::ownership;
use crate::status::ApiError;
use crate::verbs::call::Call;
use crate::wire::negotiate::Shape;
use crate::wire::reply::Reply;

pub(super) fn create(call: &Call) -> Result<Reply, ApiError> {
    call.query.check_write("CreateOptions", false)?;
    let dry_run = call.query.dry_run("CreateOptions")?;
    ownership::check_manager(call, "CreateOptions")?;
    let sent = call.decode()?;
    store_new(call, sent, dry_run)
}

/// Creates an object somebody sent, for which that somebody accounts.
pub(super) fn store_new(call: &Call, mut sent: Object, dry_run: bool) -> Result<Reply, ApiError> {
    ownership::account(call, None, &mut sent);
    store_accounted(call, sent, dry_run)
}

/// Creates an object whose fields have their owners.
pub(super) fn store_accounted(call: &Call, sent: Object, dry_run: bool) -> Result<Reply, ApiError> {
    Ok(match Creation::of(call).store(sent, dry_run)? {
        Created::Stored(stored) => call.answer_stored(StatusCode::CREATED, &stored),
        Created::DryRun(object) => answer_dry_run(call, object),
    })
}

/// Answers an object that gets no version, because it is not stored.
fn answer_dry_run(call: &Call, mut object: Object) -> Reply {
    if call.shape == Shape::Table {
        return call.answer(StatusCode::CREATED, &object, 0);
    }
    if call.shape != Shape::Whole {
        object.retain(|member, _| member == "metadata");
        object.insert("kind".into(), "PartialObjectMetadata".into());
        object.insert("apiVersion".into(), "meta.k8s.io/v1".into());
    }
    let document = serde_json::to_vec(&object).expect("an object is JSON");
    Reply::json(StatusCode::CREATED, document)
}
