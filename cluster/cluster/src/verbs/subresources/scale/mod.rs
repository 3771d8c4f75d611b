//! `scale`: the replicas of an object, whatever its kind.
//!
//! Source: `ScaleREST` in `k8s.io/kubernetes/pkg/registry/apps` and in
//! `k8s.io/apiextensions-apiserver/pkg/registry/customresource`.

mod fields;

use std::sync::Arc;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::managed::ScaleHandler;
use lariat_apimachinery::object::{Object, metadata_mut, metadata_text};
use lariat_apimachinery::validation;
use serde_json::Value;

use self::fields::{
    KIND, SPEC_REPLICAS, UNSET, at, check_paths, owned_scale, path, read, replicas_of, scale_of,
    set, types,
};
use super::body::read_body;
use crate::status::ApiError;
use crate::store::Stored;
use crate::strategy::{Part, Replacement, replacement};
use crate::verbs::admission::of_kind;
use crate::verbs::answer::{Answer, Success};
use crate::verbs::call::Call;
use crate::verbs::normalize::{Origin, refuse, refuse_patch, report};
use crate::verbs::ownership::{self, Writer};
use crate::verbs::patch::{self, Change};
use crate::verbs::update;
use crate::wire::verb::Verb;
use crate::wire::write_options::WriteOptions;

/// Returns whether a kind has the subresource.
pub(super) fn is_served(resource: &Resource) -> bool {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("apps", "deployments" | "replicasets" | "statefulsets")
        | ("", "replicationcontrollers") => true,
        _ => resource.rules.scale.is_some(),
    }
}

pub(super) async fn answer(call: &Call, verb: Verb) -> Result<Answer, ApiError> {
    match verb {
        Verb::Get => {
            let current = current(call)?;
            shown(call, &call.present(&current).await?, &current)
        }
        Verb::Update => put(call).await,
        _ => change(call).await,
    }
}

fn current(call: &Call) -> Result<Arc<Stored>, ApiError> {
    let key = call.resource.key(call.namespace(), call.name());
    let current = call.server.store.get(call.resource.table, &key);
    current.ok_or_else(|| call.not_found())
}

async fn put(call: &Call) -> Result<Answer, ApiError> {
    let dry_run = call.query.check_write(WriteOptions::Update)?;
    let scale = read_body(call, KIND).map_err(|error| unreadable(call, error))?;
    call.check_same_namespace(&scale)?;
    call.check_same_name(&scale)?;
    loop {
        let current = current(call)?;
        // The storage compares the uid of an update by itself, before anything is validated.
        let (uid, is) = (metadata_text(&scale, "uid"), current.uid());
        if !uid.is_empty() && uid != is {
            let key = current.key();
            return Err(ApiError::uid_mismatch(
                &call.resource,
                key,
                uid,
                is,
                dry_run,
            ));
        }
        let live = call.present(&current).await?;
        let before = owned_scale(call, &live, &current)?;
        let mut scale = scale.clone();
        account(call, &before, &mut scale);
        if let Some(answer) = finish(call, &current, &live, &scale, dry_run).await? {
            return Ok(answer);
        }
    }
}

async fn change(call: &Call) -> Result<Answer, ApiError> {
    let applies = call.media_type() == patch::APPLY;
    let dry_run = call.query.check_write(WriteOptions::of_patch(applies))?;
    if applies {
        return apply(call, dry_run).await;
    }
    // Go reads the patch only when it has the object.
    current(call)?;
    let change = Change::parse(call)?;
    loop {
        let current = current(call)?;
        let live = call.present(&current).await?;
        let before = owned_scale(call, &live, &current)?;
        let mut scale = change.apply_as(types().root(), before.clone())?;
        let unknown = read(&mut scale).map_err(|error| refuse_patch(call, &error))?;
        let typed = Some(types().root());
        report(call, Origin::Patch, typed, &unknown, &change.duplicates)
            .map_err(|reason| refuse(call, Origin::Patch, &reason))?;
        call.check_same_namespace(&scale)?;
        call.check_same_name(&scale)?;
        account(call, &before, &mut scale);
        if let Some(answer) = finish(call, &current, &live, &scale, dry_run).await? {
            return Ok(answer);
        }
    }
}

/// Returns the error of a body that is no Scale, as the handler of custom resources words it.
///
/// Its scheme has no Scale.
fn unreadable(call: &Call, error: ApiError) -> ApiError {
    if !call.resource.rules.custom {
        return error;
    }
    ApiError::bad_request(
        "no kind is registered for the type v1.Scale in scheme \
         \"k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781\"",
    )
}

/// The conversion in which a genuine server fails if the scale of a custom resource is applied.
///
/// It takes the Scale for a custom resource.
const NO_CONVERSION: &str =
    "to proper version: request to convert CR to an invalid group/version: autoscaling/v1";

/// Refuses to apply the scale of a custom resource that has no owner.
fn check_owned(call: &Call, before: &Object) -> Result<(), ApiError> {
    let managers = before["metadata"].get("managedFields");
    if managers.is_some() || !call.resource.rules.custom {
        return Ok(());
    }
    Err(ApiError::internal(format!(
        "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) \
         {NO_CONVERSION}"
    )))
}

/// Refuses to apply the scale of a custom resource, unless that changes nothing.
fn check_unchanged(call: &Call, before: &Object, after: &Object) -> Result<(), ApiError> {
    if !call.resource.rules.custom {
        return Ok(());
    }
    let bare = |scale: &Object| {
        let mut scale = scale.clone();
        metadata_mut(&mut scale).remove("managedFields");
        scale
    };
    if bare(before) == bare(after) {
        return Ok(());
    }
    let (namespace, name) = (call.namespace().unwrap_or_default(), call.name());
    Err(ApiError::internal(format!(
        "failed to convert new object ({namespace}/{name}; autoscaling/v1, Kind=Scale) {NO_CONVERSION}"
    )))
}

/// Applies a scale.
async fn apply(call: &Call, dry_run: bool) -> Result<Answer, ApiError> {
    let (sent, duplicates) = patch::read_applied(call, KIND.api_version, KIND.kind)?;
    let writer = Writer::of(call);
    let force = call.query.flag("force").unwrap_or(false);
    loop {
        let current = current(call)?;
        let live = call.present(&current).await?;
        let before = owned_scale(call, &live, &current)?;
        check_owned(call, &before)?;
        let applied = writer
            .write_as(types(), KIND.api_version)
            .apply(Some(&before), &sent, force);
        let mut scale = applied.map_err(|refused| {
            ownership::refusal_of(KIND.api_version, KIND.kind, &sent, &refused)
        })?;
        check_unchanged(call, &before, &scale)?;
        patch::check_duplicates(call, &duplicates)?;
        read(&mut scale).map_err(|error| refuse_patch(call, &error))?;
        call.check_same_namespace(&scale)?;
        call.check_same_name(&scale)?;
        if let Some(answer) = finish(call, &current, &live, &scale, dry_run).await? {
            return Ok(answer);
        }
    }
}

/// Checks the version and the uid that a scale names.
fn check_preconditions(call: &Call, scale: &Object, current: &Stored) -> Result<(), ApiError> {
    let (name, uid) = (call.name(), metadata_text(scale, "uid"));
    // A patch of a custom resource's scale may name any uid.
    if !call.resource.rules.custom && !uid.is_empty() && uid != current.uid() {
        let is = current.uid();
        return Err(ApiError::scale_uid_mismatch(&call.resource, name, uid, is));
    }
    match metadata_text(scale, "resourceVersion") {
        "" => Ok(()),
        version => update::check_revision(call, version, current),
    }
}

/// Records who wrote the fields of a scale.
fn account(call: &Call, before: &Object, scale: &mut Object) {
    let writer = Writer::of(call);
    let write = writer.write_as(types(), KIND.api_version);
    write.update(Some(before), scale);
}

/// Stores the replicas of a scale in its object, as the owner of the field; `None` if another client was faster.
async fn finish(
    call: &Call,
    current: &Arc<Stored>,
    live: &Object,
    scale: &Object,
    dry_run: bool,
) -> Result<Option<Answer>, ApiError> {
    let replicas = at(scale, &SPEC_REPLICAS).and_then(Value::as_i64);
    let replicas = replicas.unwrap_or(0);
    if replicas == UNSET && call.resource.rules.custom {
        let path = path(call).join(".");
        return Err(ApiError::bad_request(format!(
            "the spec replicas field \".{path}\" cannot be empty"
        )));
    }
    check(call, scale, replicas)?;
    check_preconditions(call, scale, current)?;
    let mut new = live.clone();
    let (path, api_version) = (path(call), call.resource.api_version());
    set(&mut new, &path, replicas);
    let handler = ScaleHandler {
        path: &path,
        api_version: &api_version,
    };
    handler.to_object(scale, &mut new);
    store_scaled(call, current, live, new, dry_run).await
}

async fn store_scaled(
    call: &Call,
    current: &Arc<Stored>,
    live: &Object,
    mut new: Object,
    dry_run: bool,
) -> Result<Option<Answer>, ApiError> {
    admit(call, current, (live, &mut new), dry_run).await?;
    let replacement = replacement(&call.resource, Part::Main, live, new)?;
    let after = match &replacement {
        Replacement::Unchanged => live.clone(),
        Replacement::Changed(new) | Replacement::Deleted(new) => new.clone(),
    };
    let warnings = validation::warnings(&call.resource, &after, Some(live), Part::Main);
    warnings
        .into_iter()
        .for_each(|text| call.warnings.add(text));
    if dry_run {
        return shown(call, &after, current).map(Some);
    }
    let replacement = update::stored_form(call, current.key(), replacement).await?;
    match update::replace(&call.server, &call.resource, current, &replacement) {
        Some(stored) => shown(call, &after, &stored).map(Some),
        None => Ok(None),
    }
}

/// Runs mutating and validating admission for a scale.
async fn admit(
    call: &Call,
    current: &Stored,
    (live, new): (&Object, &mut Object),
    dry_run: bool,
) -> Result<(), ApiError> {
    let request = of_kind(call.as_update(dry_run), KIND.api_version, KIND.kind);
    if request.is_void() {
        return Ok(());
    }
    let scale = |object: &Object| {
        let replicas = replicas_of(call, object).unwrap_or(0);
        scale_of(call, object, replicas, current)
    };
    let old = scale(live);
    let admitted = request.mutate(&|_| Ok(()), Some(&old), scale(new)).await?;
    request.validate(Some(&old), Some(&admitted)).await?;
    let replicas = at(&admitted, &SPEC_REPLICAS).and_then(Value::as_i64);
    // Only what admission changed is written, so that replicas which are not set stay unset.
    if replicas.unwrap_or(0) != replicas_of(call, new).unwrap_or(0) {
        set(new, &path(call), replicas.unwrap_or(0));
    }
    Ok(())
}

/// Refuses a scale that is not valid.
fn check(call: &Call, scale: &Object, replicas: i64) -> Result<(), ApiError> {
    // Custom resources are validated by their schema.
    if call.resource.rules.custom {
        return Ok(());
    }
    // `ValidateScale`.
    let mut causes = validation::validate_metadata(&call.resource, scale, None);
    let generation = at(scale, &["metadata", "generation"]).and_then(Value::as_i64);
    let numbers = [
        ("metadata.generation", generation),
        ("spec.replicas", Some(replicas)),
    ];
    for (field, number) in numbers {
        if let Some(number) = number.filter(|number| *number < 0) {
            let message = "must be greater than or equal to 0";
            causes.push(StatusCause::invalid(field, &number.into(), message));
        }
    }
    if causes.is_empty() {
        return Ok(());
    }
    let name = call.name();
    Err(ApiError::invalid_as("Scale", "autoscaling", name, &causes))
}

fn shown(call: &Call, object: &Object, stored: &Stored) -> Result<Answer, ApiError> {
    check_paths(call, object)?;
    let replicas = replicas_of(call, object).ok_or_else(|| {
        let path = path(call).join(".");
        ApiError::internal_error(format!(
            "the spec replicas field \".{path}\" does not exist"
        ))
    })?;
    Ok(Answer::Document {
        document: scale_of(call, object, replicas, stored),
        success: Success::Done,
    })
}
