//! The devices that a claim was given.

use super::bindings::check_bindings;
use super::config::check_config;
use super::lists::check_list;
use super::names::{check_pool, check_uid};
use super::request::{MOST, RequestNames, check_reference, check_references};
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::pod::check_node_selector;
use crate::validation::volumes;

/// Checks the allocation of a claim with some requests.
pub(super) fn check_allocation(at: &Field<'_>, names: &RequestNames<'_>, causes: &mut Causes) {
    let devices = at.get("devices");
    check_list(&devices.get("results"), MOST, causes, |result, causes| {
        check_result(result, names, causes);
    });
    // Those of the class and those of the claim.
    check_list(
        &devices.get("config"),
        2 * MOST,
        causes,
        |config, causes| {
            causes.check_one_of(&config.get("source"), &["FromClaim", "FromClass"]);
            check_references(&config.get("requests"), names, causes);
            check_config(config, false, causes);
        },
    );
    let selector = at.get("nodeSelector");
    if selector.is_set() {
        check_node_selector(&selector, false, causes);
    }
}

// `validateDeviceRequestAllocationResult`.
fn check_result(result: &Field<'_>, names: &RequestNames<'_>, causes: &mut Causes) {
    check_reference(&result.get("request"), names, causes);
    volumes::check_driver(&result.get("driver"), causes);
    check_pool(&result.get("pool"), causes);
    causes.check_format(&result.get("device"), formats::dns_label);
    check_bindings(result, causes);
    let share = result.get("shareID");
    if share.is_set() {
        check_uid(&share, causes);
    }
}
