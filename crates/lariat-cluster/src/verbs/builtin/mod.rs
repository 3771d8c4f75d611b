//! What the API server checks and fills in for single built-in kinds, as far as users meet it.
//!
//! Source: `k8s.io/kubernetes/pkg/apis/*/validation` and the strategies in `pkg/registry`.

mod data;
mod fixed;
mod leases;
mod pods;
mod services;
mod workloads;

use serde_json::Value;

use super::admit::Part;
use super::subresources;
use crate::api::status::Cause;
use crate::kinds::Resource;
use crate::server::Server;
use crate::store::Object;

/// Fills in what the server decides about a new object.
pub(super) fn prepare_create(
    server: &Server,
    resource: &Resource,
    object: &mut Object,
) -> Result<(), Cause> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pods::prepare_create(object),
        ("", "services") => services::prepare_create(server, resource, object)?,
        ("batch", "jobs") => workloads::prepare_job(object),
        _ => {}
    }
    Ok(())
}

/// Fills in what the server decides about an object somebody changed.
pub(super) fn prepare_update(
    server: &Server,
    resource: &Resource,
    old: &Object,
    new: &mut Object,
) -> Result<(), Cause> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "services") => services::prepare_update(server, resource, old, new),
        _ => Ok(()),
    }
}

/// Finds what is wrong with an object.
///
/// `replaced` says what part of an old state was written, and tells the old state.
pub(super) fn validate(
    resource: &Resource,
    object: &Object,
    replaced: Option<(Part, &Object)>,
) -> Vec<Cause> {
    if resource.rules.custom {
        return Vec::new();
    }
    let mut causes = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pods::validate(object),
        ("", "configmaps" | "secrets") => data::validate(resource, object),
        ("", "services") => services::validate(object),
        ("apps", plural) => workloads::validate(plural, object),
        ("batch", "jobs") => workloads::validate_job(object),
        ("batch", "cronjobs") => workloads::validate_cron_job(object),
        ("coordination.k8s.io", "leases") => leases::validate(object),
        _ => Vec::new(),
    };
    if let Some((part, old)) = replaced {
        causes.extend(subresources::check_part(part, old, object));
        if part == Part::Main {
            causes.extend(fixed::validate(resource, old, object));
        }
    }
    causes
}

/// Returns a value in an object by its path.
fn at<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let first = object.get(*first);
    rest.iter().fold(first, |value, name| value?.get(*name))
}

/// Returns whether a member is missing or empty.
fn is_void(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(_) => false,
    }
}

/// Refuses a number below zero.
fn not_negative(object: &Object, path: &[&str]) -> Option<Cause> {
    let number = at(object, path)?;
    let negative = number.as_i64().is_some_and(|number| number < 0);
    let message = "must be greater than or equal to 0";
    negative.then(|| Cause::invalid(&path.join("."), number, message))
}
