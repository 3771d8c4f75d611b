//! StorageClasses and VolumeAttributesClasses.

use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::formats;

pub(in crate::validation) fn storage_class(context: &Context<'_>, causes: &mut Causes) {
    let members = [
        "parameters",
        "provisioner",
        "reclaimPolicy",
        "volumeBindingMode",
    ];
    let [parameters, provisioner, policy, mode] = members.map(|name| context.get(name));
    check_provisioner(&provisioner, causes);
    check_parameters(&parameters, causes);
    // `validateReclaimPolicy`. `Recycle` is good for PersistentVolumes only.
    if !policy.is_void() {
        causes.check_supported(&policy, &["Delete", "Retain"]);
    }
    if mode.is_set() {
        causes.check_supported(&mode, &["Immediate", "WaitForFirstConsumer"]);
    } else {
        // Defaults fill in `Immediate`, so this is not reached through the API.
        causes.required(&mode, "");
    }
    check_topologies(&context.get("allowedTopologies"), causes);
    // `ValidateStorageClassUpdate`. What is missing here may change: `allowVolumeExpansion`, `mountOptions`,
    // `allowedTopologies`.
    if context.old.is_some() {
        for name in members {
            let old = context.old(name);
            let is_void = |at: &Field<'_>| at.is_void();
            // Go compares semantically: an empty map of parameters equals none.
            let both_void = old.as_ref().is_some_and(is_void) && context.get(name).is_void();
            if let Some(old) = old.filter(|_| !both_void) {
                causes.check_immutable(&context.get(name), &old);
            }
        }
    }
}

// `ValidateVolumeAttributesClassUpdate` checks changes first and then the new object; other kinds do it the other way.
pub(in crate::validation) fn volume_attributes_class(context: &Context<'_>, causes: &mut Causes) {
    let (driver, parameters) = (context.get("driverName"), context.get("parameters"));
    if let (Some(old_driver), Some(old_parameters)) =
        (context.old("driverName"), context.old("parameters"))
    {
        if driver.text() != old_driver.text() {
            causes.forbidden(&driver, "updates to driverName are forbidden.");
        }
        // Go uses `reflect.DeepEqual` here, for which an empty map differs from none.
        if parameters.value() != old_parameters.value() {
            causes.forbidden(&parameters, "updates to parameters are forbidden.");
        }
    }
    check_provisioner(&driver, causes);
    check_parameters(&parameters, causes);
    causes.check_given(&parameters, "must contain at least one key/value pair");
}

// `validateProvisioner` lowers the name, because the domain before a slash may have capitals here and in qualified
// names may not.
fn check_provisioner(at: &Field<'_>, causes: &mut Causes) {
    if causes.check_given(at, "") {
        let lower = at.text().to_lowercase();
        causes.check_format_of(at, &lower, formats::qualified_name);
    }
}

const MOST_PARAMETERS: usize = 512;
const MOST_BYTES: usize = 256 << 10;

fn check_parameters(parameters: &Field<'_>, causes: &mut Causes) {
    if parameters.entries().count() > MOST_PARAMETERS {
        // Go returns here: the sizes of too many parameters are not added up.
        causes.too_long(parameters, MOST_PARAMETERS);
        return;
    }
    let mut size = 0;
    for (key, value) in parameters.entries() {
        if key.is_empty() {
            // The path is that of the map, not of the key.
            causes.invalid_as(parameters, key, "field can not be empty.");
        }
        size += key.len() + value.text().len();
    }
    if size > MOST_BYTES {
        causes.too_long(parameters, MOST_BYTES);
    }
}

/// Checks which topologies volumes may have.
// `validateAllowedTopologies` and `ValidateTopologySelectorTerm`.
fn check_topologies(terms: &Field<'_>, causes: &mut Causes) {
    // Go makes the list with its final length and then appends to it, so it starts with as many nil maps as there are
    // terms. A term without expressions equals each of these, and is reported that often as a duplicate.
    let mut seen = vec![std::collections::BTreeMap::new(); terms.list().len()];
    for term in terms.items() {
        let expressions = term.get("matchLabelExpressions");
        let mut keys = std::collections::BTreeMap::new();
        for requirement in expressions.items() {
            let (key, values) = (requirement.get("key"), requirement.get("values"));
            causes.check_given(&values, "");
            let mut texts = std::collections::BTreeSet::new();
            for value in values.items() {
                if !texts.insert(value.text()) {
                    causes.duplicate_as(&value, value.text());
                }
            }
            causes.check_format(&key, formats::qualified_name);
            if keys.contains_key(key.text()) {
                causes.duplicate_as(&key, key.text());
            }
            keys.insert(key.text(), texts);
        }
        for _ in seen.iter().filter(|before| **before == keys) {
            causes.duplicate_as(&expressions, "");
        }
        seen.push(keys);
    }
}
