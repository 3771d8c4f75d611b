//! The requests of a device claim.

use std::collections::{BTreeMap, BTreeSet};

use super::config::check_config;
use super::lists::{self, check_list, check_set};
use super::names::check_fully_qualified;
use super::selectors::check_selectors;
use super::taints::check_toleration;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;

/// The largest number of requests, constraints and configurations of a claim.
// `DeviceRequestsMaxSize` and its like, which all are 32.
pub(super) const MOST: usize = 32;
const MOST_ALTERNATIVES: usize = 8;

/// The names of the requests in a claim, with those of their alternatives.
pub(super) type RequestNames<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Returns the names of the requests in a claim.
pub(super) fn request_names<'a>(devices: &Field<'a>) -> RequestNames<'a> {
    let requests = devices.get("requests");
    let named = requests.items().map(|request| {
        let alternatives = request.get("firstAvailable");
        let names = alternatives.items().map(|each| each.text_of("name"));
        (request.text_of("name"), names.collect())
    });
    named.collect()
}

/// Checks the requests of a claim.
pub(super) fn check_devices(devices: &Field<'_>, causes: &mut Causes) {
    let names = &request_names(devices);
    let requests = devices.get("requests");
    check_set(&requests, MOST, causes, lists::name, check_request);
    check_list(&devices.get("constraints"), MOST, causes, |each, causes| {
        check_constraint(each, names, causes);
    });
    check_list(&devices.get("config"), MOST, causes, |each, causes| {
        check_references(&each.get("requests"), names, causes);
        check_config(each, false, causes);
    });
}

fn check_request(request: &Field<'_>, causes: &mut Causes) {
    causes.check_format(&request.get("name"), formats::dns_label);
    let (exactly, alternatives) = (request.get("exactly"), request.get("firstAvailable"));
    match (exactly.is_set(), !alternatives.is_void()) {
        (false, false) => {
            let detail = "exactly one of `exactly` or `firstAvailable` is required";
            causes.required(request, detail);
        }
        (true, true) => {
            let detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple \
                fields are set";
            // Go passes nil as the value here.
            causes.invalid_struct(request, "null", detail);
        }
        (false, true) => {
            let most = MOST_ALTERNATIVES;
            check_set(&alternatives, most, causes, lists::name, |each, causes| {
                causes.check_format(&each.get("name"), formats::dns_label);
                check_wanted(each, causes);
            });
        }
        (true, false) => check_wanted(&exactly, causes),
    }
}

/// Checks which devices are wanted, and how many.
fn check_wanted(request: &Field<'_>, causes: &mut Causes) {
    causes.check_name(&request.get("deviceClassName"), formats::dns_subdomain);
    check_selectors(&request.get("selectors"), causes);
    let (mode, count) = (request.get("allocationMode"), request.get("count"));
    let number = count.int().unwrap_or(0);
    match mode.text() {
        // `validateDeviceAllocationMode`. Zero is the same as no count.
        "All" if number != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            causes.invalid_as(&count, number, detail);
        }
        "ExactCount" if number <= 0 => {
            causes.invalid_as(&count, number, "must be greater than zero");
        }
        "All" | "ExactCount" => {}
        _ => causes.unsupported(&mode, &["All", "ExactCount"]),
    }
    for toleration in request.get("tolerations").items() {
        check_toleration(&toleration, causes);
    }
}

fn check_constraint(constraint: &Field<'_>, names: &RequestNames<'_>, causes: &mut Causes) {
    check_references(&constraint.get("requests"), names, causes);
    let members = ["matchAttribute", "distinctAttribute"];
    match members.map(|name| constraint.get(name)) {
        // The first member that is set is checked, a second one is ignored.
        [same, _] if same.is_set() => check_fully_qualified(&same, causes),
        [_, distinct] if distinct.is_set() => check_fully_qualified(&distinct, causes),
        _ => {
            // The API server's words for none are those for several.
            let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, \
                but multiple fields are set";
            causes.required(constraint, detail);
        }
    }
}

/// Checks a list of names of requests.
pub(super) fn check_references(list: &Field<'_>, names: &RequestNames<'_>, causes: &mut Causes) {
    check_set(list, MOST, causes, lists::text, |each, causes| {
        check_reference(each, names, causes);
    });
}

/// Checks the name of a request, or of one of its alternatives behind a slash.
pub(super) fn check_reference(at: &Field<'_>, names: &RequestNames<'_>, causes: &mut Causes) {
    let detail = "must be the name of a request in the claim or the name of a request and a \
        subrequest separated by '/'";
    let parts: Vec<&str> = at.text().split('/').collect();
    if parts.len() > 2 {
        causes.invalid_as(at, at.text(), detail);
        return;
    }
    for part in &parts {
        // Both the form and the name are reported.
        causes.check_format_of(at, part, formats::dns_label);
    }
    let known = names.get(parts[0]).is_some_and(|alternatives| {
        let alternative = parts.get(1);
        alternative.is_none_or(|name| alternatives.contains(name))
    });
    if !known {
        causes.invalid_as(at, at.text(), detail);
    }
}
