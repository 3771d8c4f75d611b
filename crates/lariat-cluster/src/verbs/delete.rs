//! DELETE of an object or a collection.

use std::sync::Arc;

use http::StatusCode;
use serde_json::json;

use super::admit::{metadata_mut, metadata_text, raise_generation};
use super::delete_options::DeleteOptions;
use super::{Call, list, strategy};
use crate::api::reply::Reply;
use crate::api::status::{self, ApiError};
use crate::kinds::{Generation, Resource};
use crate::server::Server;
use crate::store::{Draft, Object, Stored, Write};

pub(super) fn delete(call: &Call) -> Result<Reply, ApiError> {
    let options = DeleteOptions::of(call)?;
    strategy::check_delete(&call.resource, call.name())?;
    let key = call.resource.key(call.namespace(), call.name());
    loop {
        let current = call.server.store.get(call.resource.table, &key);
        let current = current.ok_or_else(|| call.not_found())?;
        options.check_preconditions(call, &current)?;
        let removal = Removal::of(call, &current, options.grace_period_seconds);
        if options.is_dry_run() {
            return Ok(removal.answer(call, &current, None));
        }
        if let Some(stored) = removal.commit(&call.server, &call.resource, &current) {
            return Ok(removal.answer(call, &current, Some(&stored)));
        }
    }
}

/// Deletes what a collection request selects, and answers what there was.
pub(super) async fn delete_collection(call: &Call) -> Result<Reply, ApiError> {
    let resource = &call.resource;
    // Namespaces take everything in them along, so they go one by one.
    let is_namespaces = resource.table == call.server.kinds.namespaces;
    if is_namespaces || (resource.namespaced && call.namespace().is_none()) {
        return Err(ApiError::method_not_allowed());
    }
    let options = DeleteOptions::of(call)?;
    let selection = list::all(call).await?;
    if !options.is_dry_run() {
        for stored in &selection.objects {
            strategy::check_delete(&call.resource, stored.key().name())?;
            remove(
                &call.server,
                &call.resource,
                stored,
                options.grace_period_seconds,
            );
        }
    }
    Ok(list::reply(call, selection))
}

/// Deletes an object, or marks it where something holds it, whatever happens to it meanwhile.
pub(crate) fn remove(server: &Server, resource: &Resource, stored: &Stored, grace: Option<u64>) {
    while let Some(current) = server.store.get(resource.table, stored.key()) {
        let another = current.uid() != stored.uid();
        if another
            || removal(server, resource, &current, grace)
                .commit(server, resource, &current)
                .is_some()
        {
            return;
        }
    }
}

/// What a deletion comes to.
#[derive(Debug)]
enum Removal {
    /// The object goes; this is its very last state, which is not stored.
    Now(Object),
    /// It is marked, and goes when its finalizers or its grace period are over.
    Mark(Object),
    /// It is marked already.
    Pending,
}

fn removal(server: &Server, resource: &Resource, current: &Stored, grace: Option<u64>) -> Removal {
    let mut object = current.object();
    let grace = strategy::grace_period(resource, &object, grace);
    let marked = !metadata_text(&object, "deletionTimestamp").is_empty();
    let known = object
        .get("metadata")
        .and_then(|m| m.get("deletionGracePeriodSeconds")?.as_u64());
    if marked && known.unwrap_or(0) <= grace {
        return Removal::Pending;
    }
    if !marked && resource.rules.generation != Generation::None {
        raise_generation(&mut object);
    }
    strategy::mark_deleting(resource, &mut object);
    let metadata = metadata_mut(&mut object);
    metadata.insert("deletionTimestamp".into(), server.clock.later(grace).into());
    metadata.insert("deletionGracePeriodSeconds".into(), json!(grace));
    if strategy::may_go(resource, &object) {
        return Removal::Now(object);
    }
    Removal::Mark(object)
}

impl Removal {
    fn of(call: &Call, current: &Stored, grace: Option<u64>) -> Self {
        removal(&call.server, &call.resource, current, grace)
    }

    /// Carries the removal out; `None` if the object is no longer what it was made for.
    fn commit(
        &self,
        server: &Server,
        resource: &Resource,
        current: &Arc<Stored>,
    ) -> Option<Arc<Stored>> {
        let draft = match self {
            Self::Pending => return Some(Arc::clone(current)),
            Self::Now(_) => None,
            Self::Mark(object) => Some(Draft::new(object)),
        };
        let write = Write::new(
            resource.table,
            current.key(),
            Some(current.revision()),
            draft,
        );
        server.store.commit(write).ok()
    }

    /// Answers a Status, or the object where the kind says so or something still holds it.
    fn answer(&self, call: &Call, current: &Stored, stored: Option<&Arc<Stored>>) -> Reply {
        let resource = &call.resource;
        let answers_object = resource.rules.delete_answers_object;
        match (self, stored) {
            (Self::Now(_), _) if !answers_object => {
                let status = status::deleted(resource, current.key().name(), current.uid());
                Reply::json(StatusCode::OK, status)
            }
            (Self::Now(object), stored) if strategy::has_grace_period(resource) => {
                let revision = stored.map_or(current.revision(), |stored| stored.revision());
                call.answer(StatusCode::OK, object, revision)
            }
            (Self::Mark(object), None) => call.answer(StatusCode::OK, object, current.revision()),
            (_, stored) => {
                let stored = stored.map_or(current, |stored| stored);
                call.answer_stored(StatusCode::OK, stored)
            }
        }
    }
}
