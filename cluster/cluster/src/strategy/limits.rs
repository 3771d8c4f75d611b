//! LimitRanges and ResourceQuotas of the namespace of an object.

use std::sync::Arc;

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_apimachinery::usage::{self, Amounts, Quota};

use super::Part;
use crate::server::Server;
use crate::status::ApiError;
use crate::store::{Range, Stored};

const RANGES: &str = "limitranges";
const QUOTAS: &str = "resourcequotas";

/// Sets a new Pod's requests and limits from the defaults of its namespace.
pub(super) fn set_defaults(server: &Server, pod: &mut Object) {
    let namespace = metadata_text(pod, "namespace").to_owned();
    // Each adds what is still missing, so the first one with a default wins.
    for range in in_namespace(server, RANGES, &namespace) {
        usage::set_defaults(&range.object(), pod);
    }
}

/// Checks an object against the limit ranges of its namespace.
///
/// `old` is the state it replaces, but for a resize, which is checked like a creation.
///
/// # Errors
///
/// It has more or less than it may.
pub(crate) fn check_limits(
    server: &Server,
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
) -> Result<(), ApiError> {
    let is_limited = match resource.plural.as_str() {
        // The resources of a Pod do not change later but by a resize.
        "pods" => old.is_none(),
        "persistentvolumeclaims" => {
            // A claim that is being deleted must be able to lose its finalizer, whatever the limits are by now.
            old.is_none_or(|old| metadata_text(old, "deletionTimestamp").is_empty())
        }
        _ => false,
    };
    if !resource.group.is_empty() || !is_limited {
        return Ok(());
    }
    for range in in_namespace(server, RANGES, metadata_text(object, "namespace")) {
        usage::check_limits(&range.object(), &resource.plural, object)
            .map_err(|reason| refuse(resource, object, &reason))?;
    }
    Ok(())
}

/// Checks an object against the quotas of its namespace.
///
/// `old` is the state of which a part is replaced. What is used is counted, so whoever stores the object must
/// [hold](Server::hold_quotas) the quotas until then.
///
/// # Errors
///
/// A quota is exceeded.
pub(crate) fn check_quotas(
    server: &Server,
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
    part: Part,
) -> Result<(), ApiError> {
    if !resource.namespaced || !server.switches.enforces_quotas() {
        return Ok(());
    }
    let namespace = metadata_text(object, "namespace");
    for stored in in_namespace(server, QUOTAS, namespace) {
        let quota = Quota::read(&stored.object(), server.clock.timestamp().into());
        let used = || used(server, &quota, resource, namespace);
        quota
            .check(resource, object, old, part == Part::Resize, used)
            .map_err(|reason| refuse(resource, object, &reason))?;
    }
    Ok(())
}

/// Counts the usage of a quota by the objects of a resource.
pub(crate) fn used(
    server: &Server,
    quota: &Quota,
    resource: &Resource,
    namespace: &str,
) -> Amounts {
    let range = Range {
        namespace: Some(namespace),
        ..Range::default()
    };
    let page = server.store.range(resource.table, &range);
    let mut sum = Amounts::default();
    for stored in page.map(|page| page.objects).unwrap_or_default() {
        sum.add(&quota.usage(resource, &stored.object()));
    }
    sum
}

/// Refuses an object, which may have no name yet.
// `extractResourceName` in `k8s.io/apiserver/pkg/admission`.
pub(super) fn refuse(resource: &Resource, object: &Object, reason: &str) -> ApiError {
    let names = ["name", "generateName"].map(|member| metadata_text(object, member));
    let name = names.into_iter().find(|name| !name.is_empty());
    ApiError::forbidden(resource, name.unwrap_or("Unknown"), reason)
}

fn in_namespace(server: &Server, table: &str, namespace: &str) -> Vec<Arc<Stored>> {
    if namespace.is_empty() {
        return Vec::new();
    }
    let range = Range {
        namespace: Some(namespace),
        ..Range::default()
    };
    let page = server.store.range(server.store.table(table), &range);
    page.map(|page| page.objects).unwrap_or_default()
}
