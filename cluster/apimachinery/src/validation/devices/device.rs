//! One device of a ResourceSlice.

use super::attribute::check_attribute;
use super::bindings::check_bindings;
use super::capacity::check_policy;
use super::lists::{check_list, check_set};
use super::names::check_qualified;
use super::shapes::Placement;
use super::slice::{check_counters, counter_set};
use super::taints::check_taint;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;

const MOST_ATTRIBUTES: usize = 32;
const MOST_VALUES: usize = 48;
const MOST_TAINTS: usize = 16;
const MOST_CONSUMED: usize = 2;

/// Checks a device; `per_device` tells whether each is on nodes of its own.
pub(super) fn check_device(
    device: &Field<'_>,
    old: Option<&Field<'_>>,
    per_device: bool,
    causes: &mut Causes,
) {
    causes.check_format(&device.get("name"), formats::dns_label);
    check_properties(device, causes);
    let taints = device.get("taints");
    // Unchanged taints of a device of the same name are not checked, since effects may be removed from the API.
    if old.is_none_or(|old| old.member("taints") != taints.value()) {
        check_list(&taints, MOST_TAINTS, causes, check_taint);
    }
    let consumed = device.get("consumesCounters");
    check_set(
        &consumed,
        MOST_CONSUMED,
        causes,
        counter_set,
        |each, causes| {
            causes.check_name(&each.get("counterSet"), formats::dns_label);
            check_counters(&each.get("counters"), causes);
        },
    );
    if per_device {
        check_nodes(device, causes);
    // The slice says where all its devices are, so no device may.
    } else if !device
        .given(&["nodeName", "nodeSelector", "allNodes"])
        .is_empty()
    {
        let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
            `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
        causes.invalid_struct(device, "null", detail);
    }
    check_bindings(device, causes);
}

/// Checks the attributes and capacities of a device.
fn check_properties(device: &Field<'_>, causes: &mut Causes) {
    let (attributes, capacity) = (device.get("attributes"), device.get("capacity"));
    let values = attributes.entries().count();
    // Attributes and capacities share one limit.
    let count = values + capacity.entries().count();
    for (count, most, what) in [
        (count, MOST_ATTRIBUTES, "attributes and capacities"),
        (values, MOST_VALUES, "attribute values"),
    ] {
        if count > most {
            let detail = format!("the total number of {what} must not exceed {most}");
            causes.invalid_as(device, count, &detail);
        }
    }
    for (name, attribute) in attributes.entries() {
        check_qualified(&attributes, name, causes);
        check_attribute(&attribute, causes);
    }
    let shared = device.is_true("allowMultipleAllocations");
    for (name, each) in capacity.entries() {
        check_qualified(&capacity, name, causes);
        let policy = each.get("requestPolicy");
        // `validateMultiAllocatableDeviceCapacity`, or `validateSingleAllocatableDeviceCapacity`.
        if policy.is_set() && shared {
            check_policy(&each.get("value"), &policy, causes);
        } else if policy.is_set() {
            causes.forbidden(&policy, "allowMultipleAllocations must be true");
        }
    }
}

/// Checks on which nodes a device is.
fn check_nodes(device: &Field<'_>, causes: &mut Causes) {
    let mut placement = Placement::default();
    placement.check_name(&device.get("nodeName"), "must not be empty", causes);
    placement.check_selector(&device.get("nodeSelector"), causes);
    placement.check_flag(&device.get("allNodes"), "`allNodes`", causes);
    let rule = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
        `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    placement.check_one(device, [rule, rule], causes);
}
