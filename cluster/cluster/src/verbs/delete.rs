//! DELETE of an object or a collection.

use std::sync::Arc;

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use lariat_apimachinery::validation;

use super::answer::{Answer, Success, stamped};
use super::delete_options::DeleteOptions;
use super::delete_rules::{self, Deletion, Removal};
use super::list;
use crate::server::Server;
use crate::status::ApiError;
use crate::store::{Draft, Stored, Write};
use crate::strategy;
use crate::verbs::call::Call;

pub(super) async fn delete(call: &Call) -> Result<Answer, ApiError> {
    let options = DeleteOptions::of(call)?;
    warn(call, &options);
    strategy::check_delete_of(&call.resource, call.name())?;
    let key = call.resource.key(call.namespace(), call.name());
    loop {
        let found = call.server.store.get(call.resource.table, &key);
        let current = found.ok_or_else(|| call.not_found())?;
        options.check_preconditions(call, &current)?;
        let deletion = options.deletion();
        let removal = delete_rules::removal(&call.resource, &call.server.clock, &current, deletion);
        // As Store.Delete of Go's generic registry, which answers a pending deletion before admission.
        if !matches!(removal, Removal::Pending) {
            admit(call, &options, &current).await?;
        }
        if options.is_dry_run() {
            return Ok(answer(call, &options, &removal, current));
        }
        if let Some(stored) = commit(&call.server, &call.resource, &removal, &current) {
            return Ok(answer(call, &options, &removal, stored));
        }
    }
}

/// Runs admission for the deletion of an object.
async fn admit(call: &Call, options: &DeleteOptions, current: &Stored) -> Result<(), ApiError> {
    // Most clusters have nothing registered, and most deletions nothing to decode.
    let is_void = call.server.registrations.is_void(&call.server.store);
    if is_void && call.resource.conversion.is_none() {
        return Ok(());
    }
    let request = call.as_deletion(options.json(), options.is_dry_run());
    let old = call.present(current).await?;
    request.delete(&old).await
}

fn warn(call: &Call, options: &DeleteOptions) {
    if options.deletion().propagation.is_none()
        && let Some(warning) = validation::deletion_warning(&call.resource)
    {
        call.warnings.add(warning);
    }
}

/// Deletes the objects that a collection request selects, and answers the list of them.
pub(super) async fn delete_collection(call: &Call) -> Result<Answer, ApiError> {
    let resource = &call.resource;
    // Namespaces take everything in them along, so they go one by one.
    let is_namespaces = resource.table == call.server.kinds.namespaces;
    if is_namespaces || (resource.namespaced && call.namespace().is_none()) {
        return Err(ApiError::method_not_allowed());
    }
    let options = DeleteOptions::of(call)?;
    warn(call, &options);
    let page = list::to_delete(call).await?;
    // One by one, and the first refusal ends it: what was deleted before stays deleted, as on a genuine server.
    for stored in &page.objects {
        strategy::check_delete(resource, stored.key().name())?;
        // A list may be of an older state; what is deleted is the present one.
        let Some(current) = call.server.store.get(resource.table, stored.key()) else {
            continue;
        };
        options.check_preconditions(call, &current)?;
        admit(call, &options, &current).await?;
        if !options.is_dry_run() {
            delete_as(&call.server, resource, &current, options.deletion());
        }
    }
    Ok(Answer::List(page))
}

/// Deletes an object in the way of its kind, also if it changes meanwhile.
pub(crate) fn remove(server: &Server, resource: &Resource, stored: &Stored, grace: Option<u64>) {
    let deletion = Deletion {
        grace,
        ..Deletion::default()
    };
    delete_as(server, resource, stored, deletion);
}

/// Deletes an object or marks it as deleted, in any state.
pub(crate) fn delete_as(server: &Server, resource: &Resource, stored: &Stored, deletion: Deletion) {
    while let Some(current) = server.store.get(resource.table, stored.key()) {
        // Another object has the name now, so the one that was meant is gone.
        if current.uid() != stored.uid() {
            return;
        }
        if delete_once(server, resource, &current, deletion) {
            return;
        }
    }
}

/// Deletes an object if it is still in the state `current`; returns whether it was.
pub(crate) fn delete_once(
    server: &Server,
    resource: &Resource,
    current: &Arc<Stored>,
    deletion: Deletion,
) -> bool {
    let removal = delete_rules::removal(resource, &server.clock, current, deletion);
    commit(server, resource, &removal, current).is_some()
}

/// Carries a removal out and returns the last state.
///
/// `None` if the object is no longer what it was made for.
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

/// Removes an object that was just marked, also if it changes meanwhile.
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
    // Another deletion took it in between, and its revision is not known here.
    marked
}

/// Answers a deletion with the object or with a `Status`.
///
/// The object is returned if its deletion waits, or if its kind requires that.
fn answer(call: &Call, options: &DeleteOptions, removal: &Removal, stored: Arc<Stored>) -> Answer {
    let is_held = matches!(removal, Removal::Mark(_) | Removal::Held | Removal::Pending);
    if !is_held && !call.resource.rules.delete_answers_object {
        return Answer::Deleted(stored);
    }
    let success = if is_held && options.is_accepted_later() {
        Success::Accepted
    } else {
        Success::Done
    };
    // A dry run shows the mark it did not store.
    let stored = match removal {
        Removal::Mark(object) | Removal::MarkAndGo(object) if options.is_dry_run() => {
            stamped(object, stored.revision())
        }
        _ => stored,
    };
    Answer::Object { stored, success }
}
