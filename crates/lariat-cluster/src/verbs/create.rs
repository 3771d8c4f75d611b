//! POST to a collection.

use http::StatusCode;
use lariat_apimachinery::object::{Object, metadata_text};

use super::{admit, ownership};
use crate::status::ApiError;
use crate::store::{Draft, Refused, Write};
use crate::verbs::call::Call;
use crate::wire::negotiate::Shape;
use crate::wire::reply::Reply;

/// How many generated names are tried before a clash is reported.
const NAME_ATTEMPTS: usize = 8;

pub(crate) fn create(call: &Call) -> Result<Reply, ApiError> {
    call.query.check_write("CreateOptions", false)?;
    let dry_run = call.query.dry_run("CreateOptions")?;
    ownership::check_manager(call, "CreateOptions")?;
    let sent = call.decode()?;
    store_new(call, sent, dry_run)
}

/// Creates an object somebody sent, for which that somebody accounts.
pub(super) fn store_new(call: &Call, mut sent: Object, dry_run: bool) -> Result<Reply, ApiError> {
    ownership::account(call, None, &mut sent);
    store_accounted(call, sent, dry_run)
}

/// Creates an object whose fields have their owners, under a generated name if it has none.
pub(super) fn store_accounted(
    call: &Call,
    mut sent: Object,
    dry_run: bool,
) -> Result<Reply, ApiError> {
    let generated = metadata_text(&sent, "name").is_empty();
    let attempts = if generated { NAME_ATTEMPTS } else { 1 };
    for attempt in 1..=attempts {
        check_admission(call, metadata_text(&sent, "name"))?;
        let object = match attempt < attempts {
            true => sent.clone(),
            false => std::mem::take(&mut sent),
        };
        let object = admit::create(call, object)?;
        let key = call
            .resource
            .key(call.namespace(), metadata_text(&object, "name"));
        if let Some(existing) = call.server.store.get(call.resource.table, &key) {
            if attempt < attempts {
                continue;
            }
            let deleting = existing.is_deleting();
            return Err(ApiError::already_exists(
                &call.resource,
                key.name(),
                deleting,
            ));
        }
        if dry_run {
            return Ok(answer_dry_run(call, object));
        }
        let write = Write {
            table: call.resource.table,
            key: &key,
            expected: None,
            draft: Some(Draft::new(&object)),
            namespaces: call
                .resource
                .namespaced
                .then_some(call.server.kinds.namespaces),
            terminating: Some(&call.resource.terminating),
        };
        match call.server.store.commit(write) {
            Ok(stored) => return Ok(call.answer_stored(StatusCode::CREATED, &stored)),
            Err(Refused::Raced) if attempt < attempts => {}
            Err(Refused::Raced) => {
                return Err(ApiError::already_exists(&call.resource, key.name(), false));
            }
            Err(Refused::KindTerminating) => return Err(kind_error(call, key.name())),
            Err(refused) => return Err(namespace_error(call, refused, key.name())),
        }
    }
    unreachable!("the last attempt returns")
}

/// Answers an object that gets no version, because it is not stored.
fn answer_dry_run(call: &Call, mut object: Object) -> Reply {
    if call.shape == Shape::Table {
        return call.answer(StatusCode::CREATED, &object, 0);
    }
    if call.shape != Shape::Whole {
        object.retain(|member, _| member == "metadata");
        object.insert("kind".into(), "PartialObjectMetadata".into());
        object.insert("apiVersion".into(), "meta.k8s.io/v1".into());
    }
    let document = serde_json::to_vec(&object).expect("an object is JSON");
    Reply::json(StatusCode::CREATED, document)
}

/// Refuses creations in a namespace that is missing or going, and of a kind that is going.
pub(super) fn check_admission(call: &Call, name: &str) -> Result<(), ApiError> {
    if call.resource.is_terminating() {
        return Err(kind_error(call, name));
    }
    let Some(namespace) = call.namespace().filter(|_| call.resource.namespaced) else {
        return Ok(());
    };
    let key = lariat_core::ObjectKey::cluster(namespace);
    match call.server.store.get(call.server.kinds.namespaces, &key) {
        None => Err(namespace_error(call, Refused::NamespaceMissing, name)),
        Some(stored) if stored.is_deleting() => {
            Err(namespace_error(call, Refused::NamespaceTerminating, name))
        }
        Some(_) => Ok(()),
    }
}

fn kind_error(call: &Call, name: &str) -> ApiError {
    let why = "create not allowed while custom resource definition is terminating";
    ApiError::forbidden(&call.resource, name, why)
}

fn namespace_error(call: &Call, refused: Refused, name: &str) -> ApiError {
    let namespace = call.namespace().unwrap_or_default();
    match refused {
        Refused::NamespaceTerminating => {
            ApiError::namespace_terminating(&call.resource, name, namespace)
        }
        _ => ApiError::namespace_not_found(namespace),
    }
}
