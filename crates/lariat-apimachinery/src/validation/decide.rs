//! Which kind has which rules.

use super::causes::Causes;
use super::context::{Check, Context, Part};
use super::{coordination, core};
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

pub(super) fn check_of(group: &str, kind: &str) -> Option<Check> {
    Some(match (group, kind) {
        ("", "ConfigMap") => core::config_map,
        ("", "Secret") => core::secret,
        ("coordination.k8s.io", "Lease") => coordination::lease,
        _ => return None,
    })
}
