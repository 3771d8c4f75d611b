//! ResourceSlices.

use super::device::check_device;
use super::lists::{self, check_set};
use super::names::check_pool;
use super::shapes::{NODE_TERM, Placement};
use crate::go_text;
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::structs;
use crate::validation::volumes;

const MOST_DEVICES: usize = 128;
/// The largest number of devices if one of them has taints or consumes counters.
const MOST_ADVANCED_DEVICES: usize = 64;
const MOST_COUNTER_SETS: usize = 8;
/// The largest number of counters in a set.
const MOST_COUNTERS: usize = 32;

pub(in crate::validation) fn resource_slice(context: &Context<'_>, causes: &mut Causes) {
    let (spec, old) = (context.get("spec"), context.old("spec"));
    let (driver, pool) = (spec.get("driver"), spec.get("pool"));
    volumes::check_driver(&driver, causes);
    check_resource_pool(&pool, causes);
    // `ValidateResourceSliceUpdate`. A driver replaces slices instead of moving them.
    if let Some(old) = &old {
        causes.check_immutable(&pool.get("name"), &old.get("pool").get("name"));
        causes.check_immutable(&driver, &old.get("driver"));
        let node = spec.get("nodeName");
        if node.value() != old.member("nodeName") {
            // A pointer in Go, so a missing one is shown as null.
            causes.invalid_json(&node, "field is immutable");
        }
    }
    check_nodes(&spec, causes);
    let (counters, devices) = (spec.get("sharedCounters"), spec.get("devices"));
    // Counters are in slices of their own, so that devices of several slices can share them.
    if counters.is_set() && devices.is_set() {
        let detail = "only one of `sharedCounters` or `devices` is allowed";
        causes.invalid_as(&spec, "", detail);
    }
    let is_advanced = |device: Field<'_>| {
        ["taints", "consumesCounters"]
            .iter()
            .any(|name| !device.get(name).is_void())
    };
    let most = if devices.items().any(is_advanced) {
        MOST_ADVANCED_DEVICES
    } else {
        MOST_DEVICES
    };
    let per_device = spec.is_true("perDeviceNodeSelection");
    check_set(&devices, most, causes, lists::name, |device, causes| {
        // Devices are matched by name, since drivers reorder them.
        let old = old.as_ref().and_then(|old| same_device(old, device));
        check_device(device, old.as_ref(), per_device, causes);
    });
    let most = MOST_COUNTER_SETS;
    check_set(&counters, most, causes, lists::name, |set, causes| {
        causes.check_name(&set.get("name"), formats::dns_label);
        check_counters(&set.get("counters"), causes);
    });
}

fn same_device<'a>(old: &Field<'a>, device: &Field<'_>) -> Option<Field<'a>> {
    let mut devices = old.get("devices").items();
    devices.find(|each| each.text_of("name") == device.text_of("name"))
}

fn check_resource_pool(pool: &Field<'_>, causes: &mut Causes) {
    check_pool(&pool.get("name"), causes);
    let (count, generation) = (pool.get("resourceSliceCount"), pool.get("generation"));
    let number = count.int().unwrap_or(0);
    if number <= 0 {
        causes.invalid_as(&count, number, "must be greater than zero");
    }
    if generation.int().is_some_and(|generation| generation < 0) {
        causes.invalid(&generation, "must be greater than or equal to zero");
    }
}

/// Checks for which nodes the devices are.
fn check_nodes(spec: &Field<'_>, causes: &mut Causes) {
    let mut placement = Placement::default();
    let detail = "must be either unset or set to a non-empty string";
    placement.check_name(&spec.get("nodeName"), detail, causes);
    placement.check_selector(&spec.get("nodeSelector"), causes);
    let selector = spec.get("nodeSelector");
    let terms = selector.get("nodeSelectorTerms");
    // One term is enough for the nodes of a pool, and is cheaper to evaluate.
    if selector.is_set() && terms.list().len() != 1 {
        let shown = structs::shown_list(terms.value(), NODE_TERM);
        causes.invalid_struct(&terms, &shown, "must have exactly one node selector term");
    }
    placement.check_flag(&spec.get("allNodes"), "`allNodes`", causes);
    let each = "`perDeviceNodeSelection`";
    placement.check_flag(&spec.get("perDeviceNodeSelection"), each, causes);
    let rule = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` \
        is required";
    let several = format!("{rule}, but multiple fields are set");
    placement.check_one(spec, [rule, &several], causes);
}

/// Checks counters, of which there has to be one.
pub(super) fn check_counters(counters: &Field<'_>, causes: &mut Causes) {
    let count = counters.entries().count();
    if count == 0 {
        causes.required(counters, "");
    } else if count > MOST_COUNTERS {
        causes.too_many_of(counters, count, MOST_COUNTERS);
    } else {
        for (name, _) in counters.entries() {
            causes.check_format_of(counters, name, formats::dns_label);
        }
    }
}

/// The key of a counter set that is named.
pub(super) fn counter_set(item: &Field<'_>) -> String {
    go_text::quoted(item.text_of("counterSet"))
}
