//! PersistentVolumeClaims.

use serde_json::Value;

use crate::object::Object;
use crate::validation::causes::Causes;
use crate::validation::claims::{self, Options};
use crate::validation::context::{Context, Part};
use crate::validation::dump;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::labels::{SelectorOptions, has_odd_values};
use crate::validation::resources::{self, amount};

const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub(in crate::validation) fn persistent_volume_claim(context: &Context<'_>, causes: &mut Causes) {
    if context.updates(Part::Status) {
        check_status(context, causes);
        return;
    }
    let (spec, old) = (context.get("spec"), context.old("spec"));
    let options = Options {
        selector: SelectorOptions {
            any_values: old
                .as_ref()
                .is_some_and(|old| has_odd_values(&old.get("selector"))),
        },
        // `allowInvalidAPIGroupInDataSourceOrRef`.
        any_group: old.as_ref().is_some_and(|old| {
            ["dataSource", "dataSourceRef"]
                .iter()
                .any(|member| old.get(member).has("apiGroup"))
        }),
    };
    claims::check_spec(&spec, options, causes);
    if let Some(old) = old {
        check_fixed(context, &spec, &old, causes);
    }
}

const FIXED: &str = "spec is immutable after creation except resources.requests and \
    volumeAttributesClassName for bound claims\n";

fn check_fixed(context: &Context<'_>, spec: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    let status = context.old("status");
    let was_class = context
        .old("metadata")
        .and_then(|old| old.get("annotations").member(CLASS).as_str());
    let class = context.get("metadata").get("annotations").get(CLASS);
    // The annotation may only go if the member takes its place.
    let is_kept = class.text() == was_class.unwrap_or_default();
    if !is_kept && (class.is_set() || !is_moved(spec, old, was_class)) {
        causes.invalid_as(&class, class.text(), "field is immutable");
    }
    let bound = status
        .as_ref()
        .is_some_and(|status| status.text_of("phase") == "Bound");
    // Both sides lose what may change, and what is left must be equal.
    let now = fixed(spec, old, was_class, bound);
    let was = fixed(old, old, was_class, bound);
    if now != was {
        let now = dump::with_old(now.into(), old.value(), &was.into());
        let difference = dump::diff("PersistentVolumeClaimSpec", old.value(), &now);
        causes.forbidden(spec, &format!("{FIXED}{difference}"));
    }
    let size = |spec: &Field<'_>| amount(&spec.get("resources").get("requests").get("storage"));
    let capacity = status
        .as_ref()
        .map(|status| status.get("capacity").get("storage"));
    let has = capacity
        .as_ref()
        .map(amount)
        .unwrap_or(crate::quantity::Quantity::ZERO);
    // A request that could not be fulfilled may shrink again, but not to what the claim has already.
    if size(spec) < size(old) && size(spec) <= has {
        let at = spec.get("resources").get("requests").get("storage");
        causes.forbidden(&at, "field can not be less than status.capacity");
    }
    let mode = context.get("volumeMode").with(spec.member("volumeMode"));
    causes.check_immutable(&mode, &old.get("volumeMode"));
    let attributes = spec.get("volumeAttributesClassName");
    // Attributes that were applied cannot be taken back, only changed.
    let current = status.is_some_and(|status| status.has("currentVolumeAttributesClassName"));
    if current && attributes.value() != old.member("volumeAttributesClassName") {
        let what = if attributes.is_set() {
            "empty string"
        } else {
            "nil"
        };
        if attributes.is_void() {
            let detail = format!(
                "update to {what} is forbidden when status.currentVolumeAttributesClassName is not \
                 nil"
            );
            causes.forbidden(&attributes, &detail);
        }
    }
}

/// Returns whether the class moves from the annotation into the spec.
// `validateStorageClassUpgradeFromAnnotation`; an annotation may be there and empty.
fn is_moved(spec: &Field<'_>, old: &Field<'_>, was_class: Option<&str>) -> bool {
    let member = "storageClassName";
    was_class.is_some() && !old.has(member) && spec.member(member).as_str() == was_class
}

/// Returns the immutable members of a spec, seen from the old spec.
fn fixed(spec: &Field<'_>, old: &Field<'_>, was_class: Option<&str>, bound: bool) -> Object {
    let mut kept = spec.value().as_object().cloned().unwrap_or_default();
    if old.text_of("volumeName").is_empty() {
        kept.remove("volumeName");
    }
    // The class may be filled in where there was none.
    let class = spec.text_of("storageClassName");
    let filled = was_class.is_none_or(|was| class == was);
    if !old.has("storageClassName") && spec.has("storageClassName") && filled {
        kept.remove("storageClassName");
    }
    if bound {
        kept.remove("volumeAttributesClassName");
        let requests = kept
            .get_mut("resources")
            .and_then(|resources| resources.get_mut("requests")?.as_object_mut());
        if let Some(requests) = requests {
            requests.remove("storage");
        }
    }
    kept
}

const STATES: &[&str] = &[
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

fn check_status(context: &Context<'_>, causes: &mut Causes) {
    let status = context.get("status");
    if context.get("spec").get("accessModes").is_void() {
        // The capital letter is Go's.
        causes.required(&context.get("Spec").get("accessModes"), "");
    }
    for (_, at) in status.get("capacity").entries() {
        resources::check_basic(&at, causes);
    }
    let states = status.get("allocatedResourceStatuses");
    for (name, state) in states.entries() {
        check_name(&states, name, causes);
        if !STATES.contains(&state.text()) {
            // Go shows the resource and not the state that is unsupported.
            causes.unsupported_as(&states, name, STATES);
        }
    }
    let allocated = status.get("allocatedResources");
    for (name, at) in allocated.entries() {
        if check_name(&allocated, name, causes) && resources::check_basic(&at, causes) {
            resources::check_amount(&at, "storage", causes);
        }
    }
}

/// Checks the name of a resource of a claim, and returns whether it can be one.
fn check_name(at: &Field<'_>, name: &str, causes: &mut Causes) -> bool {
    let before = causes.count();
    causes.check_format_of(at, name, formats::qualified_name);
    if causes.count() == before && resources::is_native(name) && name != "storage" {
        let shown: Value = name.into();
        causes.unsupported_as(at, shown, &["storage"]);
    }
    causes.count() == before
}
