//! PUT of an object or a subresource.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_mut, metadata_text};
use lariat_apimachinery::validation;
use lariat_core::ObjectKey;

use super::answer::Answer;
use super::{create, escalation, ownership, signers, storage_limits};
use crate::admission;
use crate::conversion;
use crate::server::Server;
use crate::status::ApiError;
use crate::store::{Draft, Stored, Write};
use crate::strategy::{self, Part, Replacement};
use crate::verbs::call::Call;
use crate::wire::number;
use crate::wire::write_options::WriteOptions;

pub(super) async fn update(call: &Call) -> Result<Answer, ApiError> {
    call.check_named()?;
    let dry_run = call.query.check_write(WriteOptions::Update)?;
    let mut sent = call.decode()?;
    strategy::check_shape(&call.resource, &sent)?;
    check_name(call, &mut sent)?;
    let key = call.resource.key(call.namespace(), call.name());
    // A lost race comes back here: for a version that was sent it is a conflict, an update without one goes on.
    loop {
        let Some(current) = call.server.store.get(call.resource.table, &key) else {
            let puts_create = call.resource.rules.put_creates;
            if puts_create {
                check_absence(call, &key, &sent, dry_run)?;
            }
            if !puts_create || call.target.subresource.is_some() {
                return Err(call.not_found());
            }
            let mut new = sent.clone();
            drop_version(&mut new)?;
            match create::store_new(call, new, dry_run).await {
                // Another client was faster, so there is something to update.
                Err(error) if error.is_already_exists() => continue,
                answer => return answer,
            }
        };
        check_version(call, &sent, &current, dry_run)?;
        if let Some(answer) = finish(call, &current, sent.clone(), dry_run).await? {
            return Ok(answer);
        }
    }
}

/// Checks the name in the body against the one in the path.
fn check_name(call: &Call, sent: &mut Object) -> Result<(), ApiError> {
    call.check_same_namespace(sent)?;
    call.check_same_name(sent)?;
    metadata_mut(sent).insert("name".into(), call.name().into());
    Ok(())
}

/// Drops the version of an object that a PUT or an apply creates.
///
/// Unlike with POST it is no error, but has no meaning either. It must be one all the same.
pub(super) fn drop_version(new: &mut Object) -> Result<(), ApiError> {
    let version = metadata_text(new, "resourceVersion");
    if !version.is_empty() {
        number::unsigned(version).map_err(ApiError::internal)?;
    }
    metadata_mut(new).remove("resourceVersion");
    Ok(())
}

/// Refuses to create an object that is meant to replace a certain one.
fn check_absence(
    call: &Call,
    key: &ObjectKey,
    sent: &Object,
    dry_run: bool,
) -> Result<(), ApiError> {
    match metadata_text(sent, "uid") {
        "" => Ok(()),
        uid => Err(ApiError::uid_mismatch(
            &call.resource,
            key,
            uid,
            "",
            dry_run,
        )),
    }
}

/// Checks the version and the uid the client thinks it replaces.
fn check_version(
    call: &Call,
    sent: &Object,
    current: &Stored,
    dry_run: bool,
) -> Result<(), ApiError> {
    let uid = metadata_text(sent, "uid");
    if !uid.is_empty() && uid != current.uid() {
        return Err(ApiError::uid_mismatch(
            &call.resource,
            current.key(),
            uid,
            current.uid(),
            dry_run,
        ));
    }
    check_revision(call, metadata_text(sent, "resourceVersion"), current)
}

/// Checks the version that a client thinks it changes.
pub(super) fn check_revision(call: &Call, version: &str, current: &Stored) -> Result<(), ApiError> {
    // ObjectResourceVersion reads a number, of which 0 is none.
    let version = match version {
        "" => Ok(0),
        version => number::unsigned(version),
    };
    // With 500: its error is no API status.
    match version.map_err(ApiError::internal)? {
        0 if call.resource.rules.version_required => {
            Err(ApiError::version_required(&call.resource, call.name()))
        }
        version if version == 0 || version == current.revision() => Ok(()),
        _ => Err(ApiError::conflict(&call.resource, call.name())),
    }
}

/// Stores a changed state, as the owner of the changed fields.
///
/// `None` if the state is no longer the present one, and the caller has to read it again.
pub(super) async fn finish(
    call: &Call,
    current: &Arc<Stored>,
    mut sent: Object,
    dry_run: bool,
) -> Result<Option<Answer>, ApiError> {
    let old = call.present(current).await?;
    ownership::account(call, Some(&old), &mut sent);
    store_changed(call, current, &old, sent, dry_run).await
}

/// Stores a new state whose fields have owners.
///
/// `old` is the present state as an object. `None` if that state is no longer the present one.
pub(super) async fn store_changed(
    call: &Call,
    current: &Arc<Stored>,
    old: &Object,
    sent: Object,
    dry_run: bool,
) -> Result<Option<Answer>, ApiError> {
    let part = call.part();
    let request = call.as_update(dry_run);
    let plugins = |object: &mut Object| match part {
        Part::Main => strategy::admit_update(&call.server, &call.resource, old, object),
        _ => Ok(()),
    };
    let mut sent = request.mutate(&plugins, Some(old), sent).await?;
    // `mutate` does not call them where nothing is registered, and what webhooks changed last they have not seen.
    plugins(&mut sent)?;
    let mut found = Vec::new();
    if part == Part::Main {
        strategy::allocate(&call.server, &call.resource, old, &mut sent, dry_run)?;
    } else {
        strategy::stamp(&call.server, &call.resource, old, &mut sent);
        found = strategy::refuse_status(&call.server, &call.resource, old, &sent);
    }
    let link = metadata_text(&sent, "selfLink").to_owned();
    let has_empty = call.has_empty.load(Ordering::Relaxed);
    let replacement =
        strategy::replacement_as_sent(&call.resource, part, has_empty, old, sent, found)?;
    // A role that stays as it is grants nothing new.
    if let Replacement::Changed(object) = &replacement {
        escalation::check(&call.server, &call.resource, &call.user, Some(old), object)?;
    }
    let object = match &replacement {
        Replacement::Unchanged => old,
        Replacement::Changed(object) | Replacement::Deleted(object) => object,
    };
    let warnings = validation::warnings(&call.resource, object, Some(old), part);
    warnings
        .into_iter()
        .for_each(|text| call.warnings.add(text));
    if matches!(part, Part::Main | Part::Resize) {
        // What a resize asks for is checked as that of a new Pod.
        let replaced = Some(old).filter(|_| part == Part::Main);
        strategy::check_limits(&call.server, &call.resource, object, replaced)?;
    }
    admission::check_changed_pods(&request, part, old, object)?;
    if part == Part::Main {
        strategy::check_growth(&call.server, &call.resource, old, object)?;
    }
    strategy::check_node(&call.server, &call.resource, part, old, object)?;
    let states = (old, object);
    signers::check(&call.server, &call.resource, &call.user, part, states)?;
    request.validate(Some(old), Some(object)).await?;
    // Last of all, since ResourceQuota is the last plugin in Go: what was refused before must not be counted.
    if matches!(part, Part::Main | Part::Resize) {
        strategy::check_quotas(&call.server, &call.resource, object, Some(old), part)?;
    }
    if dry_run {
        let shown = with_link(call, object, link);
        return Ok(Some(Answer::unstored(&shown, current.revision())));
    }
    let replacement = stored_form(call, current.key(), replacement).await?;
    let replaced = replace(&call.server, &call.resource, current, &replacement);
    Ok(replaced.map(|stored| match replacement {
        Replacement::Deleted(object) => Answer::unstored(&object, current.revision()),
        _ => Answer::object(stored),
    }))
}

/// Returns an object with the `selfLink` of the request, as a dry run shows it.
///
/// The storage drops it.
fn with_link<'a>(call: &Call, object: &'a Object, link: String) -> Cow<'a, Object> {
    if link.is_empty() || call.part() != Part::Main {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    metadata_mut(&mut object).insert("selfLink".into(), link.into());
    Cow::Owned(object)
}

/// Converts a replacement to the version in which objects of its kind are stored, and limits its size.
pub(super) async fn stored_form(
    call: &Call,
    key: &ObjectKey,
    replacement: Replacement,
) -> Result<Replacement, ApiError> {
    Ok(match replacement {
        Replacement::Changed(object) => {
            let mut object = conversion::stored(&call.server, &call.resource, object).await?;
            storage_limits::fit(&call.resource, key, &mut object)?;
            Replacement::Changed(object)
        }
        other => other,
    })
}

/// Commits a replacement of a state; `None` if it is no longer the present one.
pub(crate) fn replace(
    server: &Server,
    resource: &Resource,
    current: &Arc<Stored>,
    replacement: &Replacement,
) -> Option<Arc<Stored>> {
    let draft = match replacement {
        Replacement::Unchanged => return Some(Arc::clone(current)),
        Replacement::Changed(object) => Some(Draft::new(object)),
        Replacement::Deleted(_) => None,
    };
    let write = Write::new(
        resource.table,
        current.key(),
        Some(current.revision()),
        draft,
    );
    server.store.commit(write).ok()
}
