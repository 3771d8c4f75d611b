//! GET of one object.

use http::StatusCode;

use super::{Call, list};
use crate::api::reply::Reply;
use crate::api::status::ApiError;

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
    Ok(call.answer_stored(StatusCode::OK, &stored))
}
