//! DELETE of an object or a collection.

use std::sync::Arc;

use http::StatusCode;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;

use super::delete_options::DeleteOptions;
use super::delete_rules::{self, Deletion, Removal};
use super::list;
use crate::server::Server;
use crate::status::{self, ApiError};
use crate::store::{Draft, Stored, Write};
use crate::strategy;
use crate::verbs::call::Call;
use crate::wire::reply::Reply;

pub(super) fn delete(call: &Call) -> Result<Reply, ApiError> {
    let options = DeleteOptions::of(call)?;
    strategy::check_delete(&call.resource, call.name())?;
    let key = call.resource.key(call.namespace(), call.name());
    loop {
        let current = call.server.store.get(call.resource.table, &key);
        let current = current.ok_or_else(|| call.not_found())?;
        options.check_preconditions(call, &current)?;
        let deletion = options.deletion();
        let removal = delete_rules::removal(&call.resource, &call.server.clock, &current, deletion);
        if options.is_dry_run() {
            return Ok(answer(call, &options, &removal, &current));
        }
        if let Some(stored) = commit(&call.server, &call.resource, &removal, &current) {
            return Ok(answer(call, &options, &removal, &stored));
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
    for stored in &selection.objects {
        strategy::check_delete(resource, stored.key().name())?;
        options.check_preconditions(call, stored)?;
        if !options.is_dry_run() {
            delete_as(&call.server, resource, stored, options.deletion());
        }
    }
    Ok(list::reply(call, selection))
}

/// Deletes an object in the way of its kind, whatever happens to it meanwhile.
pub(crate) fn remove(server: &Server, resource: &Resource, stored: &Stored, grace: Option<u64>) {
    let deletion = Deletion {
        grace,
        ..Deletion::default()
    };
    delete_as(server, resource, stored, deletion);
}

/// Deletes an object, or marks it where something holds it, whatever happens to it meanwhile.
pub(crate) fn delete_as(server: &Server, resource: &Resource, stored: &Stored, deletion: Deletion) {
    while let Some(current) = server.store.get(resource.table, stored.key()) {
        if current.uid() != stored.uid() {
            return;
        }
        if delete_once(server, resource, &current, deletion) {
            return;
        }
    }
}

/// Deletes an object if it is still in the state `current`; tells whether it was.
pub(crate) fn delete_once(
    server: &Server,
    resource: &Resource,
    current: &Arc<Stored>,
    deletion: Deletion,
) -> bool {
    let removal = delete_rules::removal(resource, &server.clock, current, deletion);
    commit(server, resource, &removal, current).is_some()
}

/// Carries a removal out and returns the last state; `None` if the object is no longer what it was
/// made for.
fn commit(
    server: &Server,
    resource: &Resource,
    removal: &Removal,
    current: &Arc<Stored>,
) -> Option<Arc<Stored>> {
    let write = |object: Option<&Object>| {
        let (key, revision) = (current.key(), Some(current.revision()));
        let write = Write::new(resource.table, key, revision, object.map(Draft::new));
        server.store.commit(write).ok()
    };
    match removal {
        Removal::Pending | Removal::Held => Some(Arc::clone(current)),
        Removal::Now => write(None),
        Removal::Mark(object) => write(Some(object)),
        Removal::MarkAndGo(object) => {
            let marked = write(Some(object))?;
            Some(finish(server, resource, marked))
        }
    }
}

/// Removes what was just marked, whatever happens to it meanwhile.
fn finish(server: &Server, resource: &Resource, marked: Arc<Stored>) -> Arc<Stored> {
    while let Some(current) = server.store.get(resource.table, marked.key()) {
        if current.uid() != marked.uid() {
            break;
        }
        let revision = Some(current.revision());
        let write = Write::new(resource.table, current.key(), revision, None);
        if let Ok(gone) = server.store.commit(write) {
            return gone;
        }
    }
    marked
}

/// Answers a Status, or the object where the kind says so or something still holds it.
fn answer(call: &Call, options: &DeleteOptions, removal: &Removal, stored: &Arc<Stored>) -> Reply {
    let resource = &call.resource;
    let marked = match removal {
        Removal::Mark(object) | Removal::MarkAndGo(object) => Some(object),
        _ => None,
    };
    match removal {
        Removal::Mark(_) | Removal::Held => {
            let code = if options.is_accepted_later() {
                StatusCode::ACCEPTED
            } else {
                StatusCode::OK
            };
            answer_object(call, options, code, marked, stored)
        }
        _ if !resource.rules.delete_answers_object => {
            let status = status::deleted(resource, stored.key().name(), stored.uid());
            Reply::json(StatusCode::OK, status)
        }
        _ => answer_object(call, options, StatusCode::OK, marked, stored),
    }
}

/// Answers the object as it was stored, or as a dry run would have stored it.
fn answer_object(
    call: &Call,
    options: &DeleteOptions,
    code: StatusCode,
    marked: Option<&Object>,
    stored: &Arc<Stored>,
) -> Reply {
    match marked.filter(|_| options.is_dry_run()) {
        Some(object) => call.answer(code, object, stored.revision()),
        None => call.answer_stored(code, stored),
    }
}
