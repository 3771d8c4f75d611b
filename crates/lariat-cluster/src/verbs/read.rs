//! GET of one object.

use http::StatusCode;

use super::{Call, list};
use crate::api::reply::Reply;
use crate::api::status::ApiError;
use crate::kinds::Resource;
use crate::store::Stored;

pub(super) async fn get(call: &Call) -> Result<Reply, ApiError> {
    let query = call.query.list()?;
    let version = query
        .version
        .as_deref()
        .map(|text| list::parse_version(call, text))
        .transpose()?;
    list::wait_for(call, version).await?;
    let key = call.resource.key(call.namespace(), call.name());
    let stored = call
        .server
        .store
        .get(call.resource.table, &key)
        .ok_or_else(|| call.not_found())?;
    Ok(Reply::json(StatusCode::OK, whole(&stored, &call.resource)))
}

/// Returns an object's JSON in the version of a resource.
pub(super) fn whole(stored: &Stored, resource: &Resource) -> Vec<u8> {
    [b"{", resource.head().as_bytes(), stored.content()].concat()
}
