//! GET of one object.

use std::sync::Arc;

use lariat_core::ObjectKey;

use super::answer::Answer;
use super::list;
use crate::status::ApiError;
use crate::store::{Range, Stored};
use crate::verbs::call::Call;

pub(super) async fn get(call: &Call) -> Result<Answer, ApiError> {
    // GetOptions have nothing else. The error about a version is no API status, so it has the code 500.
    let version = call.query.text("resourceVersion");
    let version = version.map(list::read_version).transpose();
    let version = version.map_err(ApiError::internal)?;
    list::wait_for(call, version).await?;
    let key = call.resource.key(call.namespace(), call.name());
    let found = match call.stale() {
        Some(revision) => stale(call, &key, revision),
        None => call.server.store.get(call.resource.table, &key),
    };
    found.map(Answer::object).ok_or_else(|| call.not_found())
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
    // If there was none by this name, the first one is another object behind it.
    page.objects.into_iter().find(|stored| stored.key() == key)
}
