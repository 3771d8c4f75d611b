//! Which kind has which rules.

use super::causes::Causes;
use super::context::{Check, Context, Part};
use super::field::Field;
use super::{coordination, core, pod};
use crate::cause::StatusCause;
use crate::kinds::Resource;
use crate::object::Object;

/// Finds what is wrong with an object of a built-in kind, other than its metadata.
///
/// `old` is the state it replaces, of which `part` is written; at a creation there is none, and the part is
/// [`Part::Main`]. Defaults have been filled in. Custom resources have no causes here.
#[must_use]
pub fn validate(
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
    part: Part,
) -> Vec<StatusCause> {
    let mut causes = Causes::default();
    if !resource.rules.custom
        && let Some(check) = check_of(&resource.group, &resource.kind)
    {
        check(&Context { object, old, part }, &mut causes);
    }
    causes.into_list()
}

/// Finds what is wrong with the addresses and families of a Service, which are checked before they are allocated.
#[must_use]
pub fn validate_service_addresses(service: &Object, old: Option<&Object>) -> Vec<StatusCause> {
    let mut causes = Causes::default();
    let spec = Field::of(service, "spec");
    let old = old.map(|old| Field::of(old, "spec"));
    core::check_addresses(&spec, old.as_ref(), &mut causes);
    causes.into_list()
}

pub(super) fn check_of(group: &str, kind: &str) -> Option<Check> {
    Some(match (group, kind) {
        ("", "Binding") => core::binding,
        ("", "ConfigMap") => core::config_map,
        ("", "Endpoints") => core::endpoints,
        ("", "Event") => core::core_event,
        ("", "LimitRange") => core::limit_range,
        ("", "Namespace") => core::namespace,
        ("", "Node") => core::node,
        ("", "PersistentVolume") => core::persistent_volume,
        ("", "PersistentVolumeClaim") => core::persistent_volume_claim,
        ("", "Pod") => pod::pod,
        ("", "PodTemplate") => pod::pod_template,
        ("", "ReplicationController") => core::replication_controller,
        ("", "ResourceQuota") => core::resource_quota,
        ("", "Secret") => core::secret,
        ("", "Service") => core::service,
        ("coordination.k8s.io", "Lease") => coordination::lease,
        ("events.k8s.io", "Event") => core::event,
        _ => return None,
    })
}
