//! GET of one object.

use http::StatusCode;

use super::list;
use crate::status::ApiError;
use crate::store::{Range, Stored};
use crate::verbs::call::Call;
use crate::wire::reply::Reply;
use lariat_core::ObjectKey;
use std::sync::Arc;

pub(super) async fn get(call: &Call) -> Result<Reply, ApiError> {
    let query = call.query.list()?;
    let version = query
        .version
        .as_deref()
        .map(|text| list::parse_version(call, text))
        .transpose()?;
    list::wait_for(call, version).await?;
    let key = call.resource.key(call.namespace(), call.name());
    let stored = match call.stale() {
        Some(revision) => stale(call, &key, revision),
        None => call.server.store.get(call.resource.table, &key),
    };
    let stored = stored.ok_or_else(|| call.not_found())?;
    Ok(call.answer_stored(StatusCode::OK, &stored))
}

/// Reads an object as it was at a revision.
fn stale(call: &Call, key: &ObjectKey, revision: u64) -> Option<Arc<Stored>> {
    let range = Range {
        start: Some(key.as_str()),
        at: Some(revision),
        or_oldest: true,
        limit: Some(1),
        ..Range::default()
    };
    let page = call.server.store.range(call.resource.table, &range).ok()?;
    page.objects.into_iter().find(|stored| stored.key() == key)
}
