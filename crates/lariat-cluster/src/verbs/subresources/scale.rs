//! `scale`: the replicas of an object, whatever its kind.
//!
//! Source: `ScaleREST` in `k8s.io/kubernetes/pkg/registry/apps` and in
//! `k8s.io/apiextensions-apiserver/pkg/registry/customresource`.

use std::sync::Arc;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::managed::{self, Scaled};
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_apimachinery::schema::{self, Misfit};
use serde_json::{Map, Value, json};

use super::body::read_body;
use crate::status::ApiError;
use crate::store::Stored;
use crate::strategy::{Part, Replacement, replacement, selector_text};
use crate::verbs::admission::of_kind;
use crate::verbs::answer::{Answer, Success};
use crate::verbs::call::Call;
use crate::verbs::decode::Expected;
use crate::verbs::form;
use crate::verbs::ownership::{self, Writer};
use crate::verbs::patch::{self, Change};
use crate::verbs::update;
use crate::wire::verb::Verb;

const KIND: Expected<'static> = Expected {
    kind: "Scale",
    api_version: "autoscaling/v1",
    custom: false,
};

/// The replicas that a patch of a custom resource finds where none are set.
///
/// Source: `scaleUpdatedObjectInfo`, by which it knows whether the patch sets them.
const UNSET: i64 = i32::MIN as i64;

/// The path of the replicas in built-in kinds.
const SPEC_REPLICAS: [&str; 2] = ["spec", "replicas"];

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
    call.query.check_write("UpdateOptions", false)?;
    ownership::check_manager(call, "UpdateOptions")?;
    let dry_run = call.query.dry_run("UpdateOptions")?;
    let scale = read_body(call, KIND).map_err(|error| unreadable(call, error))?;
    let name = metadata_text(&scale, "name");
    if name != call.name() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name()
        )));
    }
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
        if let Some(answer) = store(call, &current, &scale, dry_run).await? {
            return Ok(answer);
        }
    }
}

async fn change(call: &Call) -> Result<Answer, ApiError> {
    let applies = call.media_type() == patch::APPLY;
    call.query.check_write("PatchOptions", !applies)?;
    ownership::check_manager(call, "PatchOptions")?;
    let dry_run = call.query.dry_run("PatchOptions")?;
    if applies && call.resource.rules.custom {
        check_applicable(call)?;
    }
    if applies {
        return apply(call, dry_run).await;
    }
    let change = Change::parse(call)?;
    let types =
        schema::builtin(KIND.api_version, KIND.kind).unwrap_or_else(|| schema::custom(None));
    loop {
        let current = current(call)?;
        let live = call.present(&current).await?;
        let replicas = replicas_of(call, &live).unwrap_or(UNSET);
        let before = scale_of(call, &live, replicas, &current);
        let mut scale = change.apply_as(types.root(), before)?;
        read(&mut scale).map_err(|misfit| form::refuse_patch(call, &misfit))?;
        if let Some(answer) = store(call, &current, &scale, dry_run).await? {
            return Ok(answer);
        }
    }
}

/// Words a body that is no Scale as the handler of custom resources does.
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

/// Refuses to apply the scale of a custom resource, as a genuine server does.
///
/// That server takes the Scale for a custom resource and fails to convert it, unless the apply changes nothing.
fn check_applicable(call: &Call) -> Result<(), ApiError> {
    let (sent, _) = patch::read_applied(call, KIND.api_version, KIND.kind)?;
    let live = current(call)?.object();
    let reason =
        "to proper version: request to convert CR to an invalid group/version: autoscaling/v1";
    let metadata = live.get("metadata");
    let has_managers = metadata.is_some_and(|metadata| metadata.get("managedFields").is_some());
    if !has_managers {
        return Err(ApiError::internal(format!(
            "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) \
             {reason}"
        )));
    }
    let wanted = sent.get("spec").and_then(|spec| spec.get("replicas"));
    // Go leaves out a number that is 0, so an applied scale without replicas changes nothing there.
    let is = replicas_of(call, &live).filter(|count| *count != 0);
    if wanted.and_then(Value::as_i64) == is {
        return Ok(());
    }
    let (namespace, name) = (call.namespace().unwrap_or_default(), call.name());
    Err(ApiError::internal(format!(
        "failed to convert new object ({namespace}/{name}; autoscaling/v1, Kind=Scale) {reason}"
    )))
}

/// Applies the replicas as an object that has nothing else.
async fn apply(call: &Call, dry_run: bool) -> Result<Answer, ApiError> {
    let (mut sent, duplicates) = patch::read_applied(call, KIND.api_version, KIND.kind)?;
    patch::check_duplicates(call, &duplicates)?;
    // That the object is missing comes before anything that is wrong with the scale.
    current(call)?;
    let writer = Writer::of(call);
    let force = call.query.flag("force").unwrap_or(false);
    check_type(call, &writer, &sent)?;
    let given =
        sent.get("spec")
            .and_then(|spec| spec.get("replicas"))
            .map(|replicas| match replicas {
                // Null is read as zero, and counts as given.
                Value::Null => Value::from(0),
                given => given.clone(),
            });
    read(&mut sent).map_err(|misfit| form::refuse_patch(call, &misfit))?;
    if let Some(replicas) = given.as_ref().and_then(Value::as_i64) {
        check(call, replicas)?;
    }
    let path = path(call);
    let scaled = Scaled { path: &path };
    loop {
        let current = current(call)?;
        check_preconditions(call, &sent, &current)?;
        let live = call.present(&current).await?;
        let Some(replicas) = &given else {
            return shown(call, &live, &current);
        };
        let applied = scaled.applied(replicas, &live);
        // A scale has no replicas where they are zero.
        let mut shown = live.clone();
        if replicas_of(call, &live) == Some(0) {
            unset(&mut shown, &path);
        }
        let mut merged = writer
            .write(&call.resource)
            .apply(Some(&shown), &applied, force)
            .map_err(|refused| ownership::refusal(call, &applied, &refused))?;
        scaled.forget_times(&mut merged);
        if let Some(answer) = finish(call, &current, &live, merged, dry_run).await? {
            return Ok(answer);
        }
    }
}

/// Checks that what is applied is a scale.
fn check_type(call: &Call, writer: &Writer, sent: &Object) -> Result<(), ApiError> {
    let Some(types) = schema::builtin(KIND.api_version, KIND.kind) else {
        return Ok(());
    };
    let write = managed::Write {
        schema: &types,
        ..writer.write(&call.resource)
    };
    // Nothing is there that it could be in conflict with.
    let typed = write.apply(None, sent, true);
    typed
        .map(drop)
        .map_err(|refused| ownership::refusal_of(KIND.api_version, KIND.kind, sent, &refused))
}

/// Checks the version and the uid that a scale names.
fn check_preconditions(call: &Call, scale: &Object, current: &Stored) -> Result<(), ApiError> {
    let (name, uid) = (call.name(), metadata_text(scale, "uid"));
    // A patch of a custom resource's scale may name any uid.
    if !call.resource.rules.custom && !uid.is_empty() && uid != current.uid() {
        let is = current.uid();
        return Err(ApiError::scale_uid_mismatch(&call.resource, name, uid, is));
    }
    let version = metadata_text(scale, "resourceVersion");
    if !version.is_empty() && version != current.revision().to_string() {
        return Err(ApiError::conflict(&call.resource, name));
    }
    Ok(())
}

/// Puts a scale into the form of its type.
fn read(scale: &mut Object) -> Result<(), Misfit> {
    match schema::builtin(KIND.api_version, KIND.kind) {
        Some(types) => schema::decode(types.root(), scale).map(drop),
        None => Ok(()),
    }
}

/// Stores what a scale says about its object; `None` if another client was faster.
async fn store(
    call: &Call,
    current: &Arc<Stored>,
    scale: &Object,
    dry_run: bool,
) -> Result<Option<Answer>, ApiError> {
    let given = scale.get("spec").and_then(|spec| spec.get("replicas"));
    let replicas = given.and_then(Value::as_i64).unwrap_or(0);
    if replicas == UNSET && call.resource.rules.custom {
        let path = path(call).join(".");
        return Err(ApiError::bad_request(format!(
            "the spec replicas field \".{path}\" cannot be empty"
        )));
    }
    check(call, replicas)?;
    check_preconditions(call, scale, current)?;
    let live = call.present(current).await?;
    let mut new = live.clone();
    let path = path(call);
    set(&mut new, &path, replicas);
    let scaled = Scaled { path: &path };
    let writer = Writer::of(call);
    scaled.update(&writer.write(&call.resource), &live, &mut new);
    finish(call, current, &live, new, dry_run).await
}

async fn finish(
    call: &Call,
    current: &Arc<Stored>,
    live: &Object,
    mut new: Object,
    dry_run: bool,
) -> Result<Option<Answer>, ApiError> {
    admit(call, current, (live, &mut new), dry_run).await?;
    let replacement = replacement(&call.resource, Part::Main, live, new)?;
    if dry_run {
        let object = match &replacement {
            Replacement::Unchanged => live,
            Replacement::Changed(new) | Replacement::Deleted(new) => new,
        };
        return shown(call, object, current).map(Some);
    }
    let shown_as = match &replacement {
        Replacement::Unchanged => live.clone(),
        Replacement::Changed(new) | Replacement::Deleted(new) => new.clone(),
    };
    let replacement = update::stored_form(call, replacement).await?;
    match update::replace(&call.server, &call.resource, current, &replacement) {
        Some(stored) => shown(call, &shown_as, &stored).map(Some),
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

fn check(call: &Call, replicas: i64) -> Result<(), ApiError> {
    // Custom resources are validated by their schema.
    if replicas >= 0 || call.resource.rules.custom {
        return Ok(());
    }
    let message = "must be greater than or equal to 0";
    let value = Value::from(replicas);
    let cause = StatusCause::invalid("spec.replicas", &value, message);
    Err(ApiError::invalid_as(
        "Scale",
        "autoscaling",
        call.name(),
        &[cause],
    ))
}

/// Returns where the replicas are.
fn path(call: &Call) -> Vec<&str> {
    let paths = call.resource.rules.scale.as_ref();
    let custom = paths.and_then(|paths| paths.spec_path.members());
    custom.unwrap_or_else(|| SPEC_REPLICAS.to_vec())
}

fn unset(object: &mut Object, path: &[&str]) {
    match path {
        [] => {}
        [last] => drop(object.remove(*last)),
        [first, rest @ ..] => {
            if let Some(Value::Object(inner)) = object.get_mut(*first) {
                unset(inner, rest);
            }
        }
    }
}

fn set(object: &mut Object, path: &[&str], replicas: i64) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        object.insert((*first).to_owned(), replicas.into());
        return;
    }
    let inner = object.entry(*first).or_insert_with(|| json!({}));
    if let Value::Object(inner) = inner {
        set(inner, rest, replicas);
    }
}

fn shown(call: &Call, object: &Object, stored: &Stored) -> Result<Answer, ApiError> {
    let replicas = replicas_of(call, object).ok_or_else(|| {
        let path = path(call).join(".");
        ApiError::internal(format!(
            "the spec replicas field \".{path}\" does not exist"
        ))
    })?;
    Ok(Answer::Document {
        document: scale_of(call, object, replicas, stored),
        success: Success::Done,
    })
}

/// Returns the wanted replicas of an object; a custom resource may have none.
fn replicas_of(call: &Call, object: &Object) -> Option<i64> {
    let found = at(object, &path(call)).and_then(Value::as_i64);
    match call.resource.rules.scale {
        Some(_) => found,
        None => Some(found.unwrap_or(0)),
    }
}

fn at<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(object.get(*first)?, |value, name| value.get(*name))
}

/// Returns the present replicas of an object and the selector of its Pods.
fn status_of(call: &Call, object: &Object) -> (i64, String) {
    let (replicas, selector) = match &call.resource.rules.scale {
        Some(paths) => {
            let whole = Value::Object(object.clone());
            let replicas = paths.status_path.first(&whole).and_then(Value::as_i64);
            let selector = paths.selector_path.as_ref();
            let selector =
                selector.and_then(|path| path.first(&whole)?.as_str().map(str::to_owned));
            (replicas, selector)
        }
        None => (
            at(object, &["status", "replicas"]).and_then(Value::as_i64),
            at(object, &["spec", "selector"]).and_then(selector_text),
        ),
    };
    (replicas.unwrap_or(0), selector.unwrap_or_default())
}

/// Makes the scale of an object.
fn scale_of(call: &Call, object: &Object, replicas: i64, stored: &Stored) -> Object {
    let mut metadata = Map::new();
    for member in ["name", "namespace", "uid", "creationTimestamp"] {
        let value = object
            .get("metadata")
            .and_then(|metadata| metadata.get(member));
        if let Some(value) = value {
            metadata.insert(member.to_owned(), value.clone());
        }
    }
    metadata.insert(
        "resourceVersion".into(),
        stored.revision().to_string().into(),
    );
    let (present, selector) = status_of(call, object);
    let mut status = json!({"replicas": present});
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    let mut scale = Object::new();
    scale.insert("kind".into(), KIND.kind.into());
    scale.insert("apiVersion".into(), KIND.api_version.into());
    scale.insert("metadata".into(), metadata.into());
    // Go leaves out a number that is 0.
    let spec = if replicas == 0 {
        json!({})
    } else {
        json!({"replicas": replicas})
    };
    scale.insert("spec".into(), spec);
    scale.insert("status".into(), status);
    scale
}
